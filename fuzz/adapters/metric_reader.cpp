// How a program's figure is read, and what the program printed: the first line is the `read` of a
// queue, the rest the output. And the first line as a predicate of `revisit_when`.
#include "adapters/metric_reader.h"

#include <string>

#include "fuzz/fuzz.h"
#include "ledger/predicate.h"

namespace reckon::fuzz {

void fuzz(std::string_view bytes) {
  const std::string_view first = bytes.substr(0, bytes.find('\n'));
  const std::string output(bytes.substr(std::min(bytes.size(), first.size() + 1)));
  (void)accepted(ledger::parse_predicate(first));
  const Result<adapters::MetricReader> reader = adapters::MetricReader::parse(first);
  if (!accepted(reader)) return;
  (void)accepted(reader->read(output, ""));
  (void)accepted(reader->read("", output));
}

}  // namespace reckon::fuzz
