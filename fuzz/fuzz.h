// What every fuzz target is: fuzz() takes any bytes at all. It may refuse them with an error of one
// line; it must not crash, hang, read what is not there or take memory without bound. One file a
// target, in the folder of the module that it links; scripts/fuzz builds and runs them.
#pragma once

#include <string>
#include <string_view>

#include "base/check.h"
#include "base/result.h"
#include "base/utf8.h"

namespace reckon::fuzz {

void fuzz(std::string_view bytes);

// True where the result is there; where it is an error, holds the message to what users get to see.
template <typename T>
bool accepted(const Result<T>& result) {
  if (result.ok()) return true;
  const std::string& message = result.error().message;
  RECKON_CHECK(!message.empty() && message.find('\n') == message.npos && valid_utf8(message));
  return false;
}

}  // namespace reckon::fuzz
