// What tells one command from another without running it: the content of its program, its
// arguments, its environment and its inputs.
//
// The weaker of two proofs that arms ran different code: a program may do the same whatever its
// arguments say. It errs to that side only: what is called equal is the same program file (with its
// own libraries) under the same name, with the same arguments, environment and inputs.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "experiment/command_workload.h"

namespace reckon::adapters {

struct CommandIdentity {
  std::string program;  // its name without folders
  std::string text;     // the command, one line, with the program's name without folders
  std::string hash;     // of everything: 16 hexadecimal digits
  std::string place;    // of where the program and its inputs lie: 16 hexadecimal digits
  // The program, the libraries that it loads from outside the system's folders, the inputs: as
  // named -> content hash.
  std::map<std::string, std::string> files;
};

// `command` has no {KEY} left. kUsage: no such program or input.
[[nodiscard]] Result<CommandIdentity> identify(const experiment::CommandWorkload& command);

// Where a program is: a path, or a name on PATH; "" where it is not.
[[nodiscard]] std::string find_program(const std::string& name);

}  // namespace reckon::adapters
