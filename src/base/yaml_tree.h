// YAML as a plain tree with line numbers, so that one file only knows the YAML library. Pure and
// thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace reckon {

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Member;

  Kind kind = Kind::kNull;
  int line = 0;                 // counted from 1
  std::string scalar;           // as written: "on" stays "on"
  std::vector<YamlNode> items;  // kList
  std::vector<Member> members;  // kMap, in file order, keys unique

  [[nodiscard]] const YamlNode* find(std::string_view key) const;
};

struct YamlNode::Member {
  std::string key;
  int key_line = 0;
  YamlNode value;
};

// One document. Usage errors "PATH:LINE: …": not UTF-8, control characters, syntax, a key that is
// no scalar or stands twice, several documents, more than 100,000 nodes or 32 levels (aliases
// counted as often as they are used).
[[nodiscard]] Result<YamlNode> parse_yaml(std::string_view text, const std::string& path);

// "PATH:LINE: message" on one line, whatever names the message quotes.
[[nodiscard]] Error yaml_error(const std::string& path, int line, const std::string& message);

}  // namespace reckon
