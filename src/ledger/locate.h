// Which ledger is used when none is named, and where a user's own state lies.
//
// A folder holds a ledger when it contains a file named <writer>-<yyyy>-<mm>.jsonl or the marker
// `.reckon-ledger`, which the first append creates (and which an empty ledger may be started with).
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace reckon::ledger {

struct LocateInputs {
  std::filesystem::path working_folder;
  std::string xdg_data_home;  // $XDG_DATA_HOME; used only where absolute, as XDG says
  std::string home;           // $HOME
};

// The nearest `ledger` folder at or above the working folder that holds a ledger; else
// <XDG data folder>/reckon/ledger, which need not exist yet. Error: neither XDG nor home known.
[[nodiscard]] Result<std::string> locate_ledger(const LocateInputs& inputs);

// The same from the process's working folder and environment.
[[nodiscard]] Result<std::string> default_ledger();

// Where things wait that are to last and belong to this machine: $XDG_STATE_HOME/reckon, else
// ~/.local/state/reckon. It need not exist. Only absolute paths count; error: neither is one.
[[nodiscard]] Result<std::string> state_folder();

[[nodiscard]] bool holds_ledger(const std::filesystem::path& folder);

}  // namespace reckon::ledger
