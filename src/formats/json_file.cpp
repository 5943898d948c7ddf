#include "formats/json_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "formats/file_error.h"

namespace reckon {
namespace {

using nlohmann::json;

constexpr size_t kDeepest = 64;

// Builds the value while it is parsed, in time that grows with the text alone (json::parse() with a
// callback looks at all members of an object anew for each of them). Stops where a name stands
// twice, which json::parse() lets replace the value, and at what nests deeper than code that walks
// it recursively could stand.
class Builder final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }  // not of JSON
  bool start_object(size_t /*unknown*/) override { return open(json::object()); }
  bool end_object() override { return close(); }
  bool start_array(size_t /*unknown*/) override { return open(json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    const auto [member, is_new] = open_.back()->emplace(name, nullptr);
    member_ = &*member;
    if (!is_new) problem_ = fmt::format("has '{}' twice", printable(name));
    return is_new;
  }

  bool parse_error(size_t position, const std::string& /*token*/,
                   const json::exception& error) override {
    problem_ = dynamic_cast<const json::parse_error*>(&error) != nullptr
                   ? fmt::format("is not JSON (at byte {})", position)
                   : fmt::format("is not usable JSON ({})", printable(error.what()));
    return false;
  }

  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] json& root() { return root_; }

 private:
  json* place(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    *member_ = std::move(value);
    return member_;
  }
  bool add(json value) {
    place(std::move(value));
    return true;
  }
  bool open(json value) {
    if (open_.size() == kDeepest) {
      problem_ = fmt::format("nests deeper than {}", kDeepest);
      return false;
    }
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  json root_;
  std::vector<json*> open_;  // from the root inwards; each in the one before
  json* member_ = nullptr;   // of the innermost object, where a value is due
  std::string problem_;
};

}  // namespace

Status parse_json_object(std::string_view path, std::string_view what, std::string_view text,
                         json& object) {
  // The library would take it for the end.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return file_error(path, fmt::format("{} is not JSON (at byte {})", what, nul + 1));
  }
  Builder builder;
  json::sax_parse(text, &builder);
  if (!builder.problem().empty()) {
    return file_error(path, fmt::format("{} {}", what, builder.problem()));
  }
  if (!builder.root().is_object()) {
    return file_error(path, fmt::format("{} is not a JSON object", what));
  }
  object = std::move(builder.root());
  return {};
}

}  // namespace reckon
