// Result<T>: a value or an Error, for everything that can fail because of the outside world.
//
// Contract: a function that can fail on bad input, files or the machine returns Result<T>; a
// broken invariant of our own code is a CHECK (check.h). Messages are one line and name the file,
// key or tensor concerned and what was expected. Not thread-safe beyond what T is.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/check.h"

namespace reckon {

// What kind of failure this is; the command line maps each kind to its documented exit code.
enum class ErrorKind {
  kFailed,   // the work could not be done: broken file, I/O, a bug that was caught (exit 1)
  kUsage,    // what the user typed or wrote in a queue file is wrong (exit 2)
  kRefused,  // known already, would not fit, or could not be seen: nothing was run (exit 3)
  // Known, and right elsewhere: this device lacks what it needs. As kUsage on a command line
  // (exit 2); of a queue it refuses the one experiment.
  kUnsupported,
};

struct Error {
  ErrorKind kind = ErrorKind::kFailed;
  std::string message;  // one line, no trailing newline
};

[[nodiscard]] inline Error failed(std::string message) {
  return Error{ErrorKind::kFailed, std::move(message)};
}
[[nodiscard]] inline Error usage_error(std::string message) {
  return Error{ErrorKind::kUsage, std::move(message)};
}
[[nodiscard]] inline Error refused(std::string message) {
  return Error{ErrorKind::kRefused, std::move(message)};
}
[[nodiscard]] inline Error unsupported(std::string message) {
  return Error{ErrorKind::kUnsupported, std::move(message)};
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  // Converts from what T is made of, so that `return nullptr`-like shortcuts keep working.
  template <typename U>
  requires(std::is_constructible_v<T, U&&> && !std::is_same_v<std::remove_cvref_t<U>, Error> &&
           !std::is_same_v<std::remove_cvref_t<U>, Result> &&
           !std::is_same_v<std::remove_cvref_t<U>, T>) Result(U&& value)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& value() & {
    RECKON_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  [[nodiscard]] const T& value() const& {
    RECKON_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  [[nodiscard]] T&& value() && {
    RECKON_CHECK(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  [[nodiscard]] const Error& error() const {
    RECKON_CHECK(!ok());
    return *std::get_if<1>(&state_);
  }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const Error& error() const {
    RECKON_CHECK(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace reckon

#define RECKON_CONCAT_INNER(a, b) a##b
#define RECKON_CONCAT(a, b) RECKON_CONCAT_INNER(a, b)

// TRY(expr): returns the error of a Status (or any Result whose value is not wanted).
#define TRY(expr)                                            \
  do {                                                       \
    if (auto try_result = (expr); !try_result.ok()) {        \
      return ::reckon::Error(std::move(try_result).error()); \
    }                                                        \
  } while (false)

// TRY_ASSIGN(auto x, expr): declares or assigns x, or returns the error.
#define TRY_ASSIGN(lhs, expr) TRY_ASSIGN_INNER(RECKON_CONCAT(try_result_, __LINE__), lhs, expr)
#define TRY_ASSIGN_INNER(tmp, lhs, expr)              \
  auto tmp = (expr);                                  \
  if (!tmp.ok()) return ::reckon::Error(tmp.error()); \
  lhs = std::move(tmp).value()
