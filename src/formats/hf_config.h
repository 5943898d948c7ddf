// The config.json of a Hugging Face folder, for Checkpoint (whose header says how keys are looked
// up). Const after open() and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/mapped_file.h"

namespace reckon {

class HfConfig {
 public:
  [[nodiscard]] static Result<HfConfig> open(const std::string& path);
  // A configuration made in memory; `name` stands for the path in messages.
  [[nodiscard]] static Result<HfConfig> parse(std::string name, std::string_view text);

  HfConfig(HfConfig&&) noexcept;
  HfConfig& operator=(HfConfig&&) noexcept;
  ~HfConfig();

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] const MappedFile& file() const;
  [[nodiscard]] std::string_view text() const;  // the file as it is

  // model_type without a trailing "_text".
  [[nodiscard]] Result<std::string> architecture() const;

  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] Result<int64_t> integer(std::string_view key) const;
  [[nodiscard]] Result<double> number(std::string_view key) const;
  [[nodiscard]] Result<bool> boolean(std::string_view key) const;
  [[nodiscard]] Result<std::string> string(std::string_view key) const;
  [[nodiscard]] Result<std::vector<int64_t>> integers(std::string_view key) const;
  [[nodiscard]] Result<std::vector<std::string>> strings(std::string_view key) const;

  // The text model's configuration without keys that change no result, in a canonical form.
  [[nodiscard]] std::string canonical() const;

 private:
  struct State;
  [[nodiscard]] static Result<HfConfig> from(MappedFile file);
  explicit HfConfig(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace reckon
