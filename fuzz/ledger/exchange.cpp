// Files of other benchmark tools: every reader, not only the one that the text looks like. What a
// format holds must come back from its own file with as many samples.
#include "ledger/exchange.h"

#include <string>
#include <vector>

#include "fuzz/fuzz.h"

namespace reckon::fuzz {
namespace {

using ledger::FileFormat;
using ledger::Series;

void round_trip(const FileFormat& format, const std::vector<Series>& all) {
  for (const Series& series : all) {
    const Result<std::string> text = format.write({&series, 1});
    if (!accepted(text)) continue;
    const Result<std::vector<Series>> again = format.read(*text, "input");
    RECKON_CHECK(again.ok());
    size_t samples = 0;
    for (const Series& part : *again) samples += part.samples.size();
    RECKON_CHECK(samples == series.samples.size());
  }
}

}  // namespace

void fuzz(std::string_view bytes) {
  (void)accepted(ledger::recognise_format(bytes, "input"));
  for (const FileFormat& format : ledger::file_formats()) {
    const Result<std::vector<Series>> all = format.read(bytes, "input");
    if (!accepted(all)) continue;
    for (const FileFormat& other : ledger::file_formats()) round_trip(other, *all);
  }
}

}  // namespace reckon::fuzz
