#include "formats/tokenizer_state.h"

#include "base/utf8.h"

namespace reckon {

using Form = AddedTokens::Form;
using Start = PreTokenizer::Start;

void TokenizerState::encode(std::string_view text, Special special,
                            std::vector<int32_t>& ids) const {
  added.split(
      text, Form::kRaw, special,
      [&](std::string_view part) { encode_piece(part, part.data() == text.data(), special, ids); },
      [&](int32_t id) { ids.push_back(id); });
}

// Runs of valid UTF-8, and single bytes between them.
void TokenizerState::encode_piece(std::string_view piece, bool first, Special special,
                                  std::vector<int32_t>& ids) const {
  Start start = first ? Start::kFirst : Start::kLater;
  while (!piece.empty()) {
    const size_t valid = valid_utf8_prefix(piece);
    if (valid > 0) encode_run(piece.substr(0, valid), start, special, ids);
    piece.remove_prefix(valid);
    if (piece.empty()) return;
    model->byte(static_cast<uint8_t>(piece[0]), ids);
    piece.remove_prefix(1);
    start = Start::kContinues;
  }
}

void TokenizerState::encode_run(std::string_view run, Start start, Special special,
                                std::vector<int32_t>& ids) const {
  std::string normal;
  if (!normalizer.empty()) {
    normal = normalizer.apply(run, start == Start::kContinues ? Normalizer::Start::kContinues
                                                              : Normalizer::Start::kBegins);
    run = normal;
  }
  added.split(
      run, Form::kNormalized, special,
      [&](std::string_view part) {
        const bool begins = part.data() == run.data();
        pre.split(part, begins ? start : Start::kLater,
                  [&](std::string_view piece) { model->tokenize(piece, ids); });
      },
      [&](int32_t id) { ids.push_back(id); });
}

}  // namespace reckon
