// Where events are kept. Append-only: no implementation edits or deletes an event.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ledger/event.h"

namespace reckon::ledger {

struct AppendReport {
  size_t appended = 0;
  std::vector<std::string> warnings;  // such as a torn line that was set aside
};

struct ReadReport {
  // Each event once (by checksum). By time; events of one writer keep the order that they were
  // appended in, whatever the clock did; ties between writers go by name.
  std::vector<Event> events;
  std::vector<std::string> warnings;  // "file:line: what": events that were left out
};

struct VerifyReport {
  size_t events = 0;                // valid ones, repeats not counted
  std::vector<std::string> errors;  // "file:line: what"
  std::vector<std::string> notes;   // nothing wrong: repeats, torn lines set aside earlier
  [[nodiscard]] bool ok() const { return errors.empty(); }
};

// Thread-safe, and safe between processes: appends never interleave and readers never see half of
// an event.
class Store {
 public:
  virtual ~Store() = default;

  // All events are on stable storage when this returns ok; on an error none of the events of any
  // one writer and month is half-written. Every event is checked first (check_event, check_body).
  // Appending the same event again is harmless.
  [[nodiscard]] virtual Result<AppendReport> append(std::span<const Event> events) = 0;

  // An absent ledger reads as an empty one. Needs no write access.
  [[nodiscard]] virtual Result<ReadReport> read() const = 0;

  // Checks every event; fails only where the ledger cannot be read at all.
  [[nodiscard]] virtual Result<VerifyReport> verify() const = 0;

  [[nodiscard]] virtual const std::string& location() const = 0;

  // Where on this machine lies what belongs to the ledger and is not in it yet, such as the
  // journals of runs. It need not exist. Error: no place for it is known.
  [[nodiscard]] virtual Result<std::filesystem::path> local_folder() const = 0;

  // The folder of JSON lines that an index may lie in; empty for a store that needs none.
  [[nodiscard]] virtual std::filesystem::path indexed_folder() const { return {}; }
};

}  // namespace reckon::ledger
