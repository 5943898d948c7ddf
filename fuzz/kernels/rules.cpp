// A file of tile rules, asked about calls inside and outside its conditions, and written again.
#include "fuzz/fuzz.h"
#include "kernels/tile_rules.h"
#include "kernels/variants.h"
#include "tensor/dtype.h"

namespace reckon::fuzz {
namespace {

void ask(const kernels::TileRules& rules, const kernels::OpCall& call) {
  const size_t number = rules.find(call);
  RECKON_CHECK(number <= rules.rules.size());
  if (number > 0) RECKON_CHECK(!rules.rules[number - 1].text().empty());
  for (const int64_t chunk : {int64_t{1}, rules.chunks.front()}) {
    const std::string outside = rules.outside(call, chunk, rules.device);
    RECKON_CHECK(outside.find('\n') == outside.npos);
  }
}

}  // namespace

void fuzz(std::string_view bytes) {
  const auto rules = kernels::parse_tile_rules(bytes, "input.yaml");
  if (!accepted(rules)) return;
  kernels::OpCall call;
  call.op = kernels::Op::kMatmul;
  for (const DType type : {DType::kQ4_0, DType::kF32}) {
    for (const int64_t size : {int64_t{1}, int64_t{512}, int64_t{1} << 40}) {
      call.weight_type = type;
      call.rows = call.n = call.k = size;
      ask(*rules, call);
    }
  }
  // Only the texts of the head can be such that they are not read back as they are.
  kernels::TileRules plain = *rules;
  plain.name = "name";
  plain.date = plain.ledger = plain.device.backend = plain.device.vendor = plain.device.isa =
      "word";
  const auto again = kernels::parse_tile_rules(kernels::tile_rules_text(plain, "again"), "again");
  RECKON_CHECK(again.ok());
  RECKON_CHECK(again->rules == rules->rules && again->shapes == rules->shapes);
}

}  // namespace reckon::fuzz
