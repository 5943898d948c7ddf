#include "base/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "base/utf8.h"

namespace reckon {
namespace {

constexpr int kMaximumDepth = 32;
constexpr int kMaximumNodes = 100000;

int line_of(const YAML::Mark& mark) {
  return mark.line < 0 ? 1 : mark.line + 1;
}

struct Converter {
  const std::string& path;
  int nodes = 0;

  Result<YamlNode> convert(const YAML::Node& source, int depth) {
    YamlNode node;
    node.line = line_of(source.Mark());
    if (depth > kMaximumDepth) return yaml_error(path, node.line, "nested too deeply");
    if (++nodes > kMaximumNodes) return yaml_error(path, node.line, "too many values in this file");
    if (source.IsScalar()) {
      node.kind = YamlNode::Kind::kScalar;
      node.scalar = source.Scalar();
    } else if (source.IsSequence()) {
      node.kind = YamlNode::Kind::kList;
      for (const YAML::Node& item : source) {
        TRY_ASSIGN(YamlNode child, convert(item, depth + 1));
        node.items.push_back(std::move(child));
      }
    } else if (source.IsMap()) {
      node.kind = YamlNode::Kind::kMap;
      for (const auto& member : source)
        TRY(convert_member(member.first, member.second, node, depth));
    }
    return node;
  }

  Status convert_member(const YAML::Node& key, const YAML::Node& value, YamlNode& map, int depth) {
    const int line = line_of(key.Mark());
    if (!key.IsScalar()) return yaml_error(path, line, "a key must be a word");
    if (map.find(key.Scalar()) != nullptr) {
      return yaml_error(path, line, fmt::format("'{}' stands here twice", key.Scalar()));
    }
    TRY_ASSIGN(YamlNode child, convert(value, depth + 1));
    // The library has no mark for a missing value.
    if (child.kind == YamlNode::Kind::kNull) child.line = line;
    map.members.push_back({key.Scalar(), line, std::move(child)});
    return {};
  }
};

// Notes where documents begin.
class DocumentStarts final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { marks.push_back(mark); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  std::vector<YAML::Mark> marks;
};

// Where the first document begins and the second, if there are any. YAML::LoadAll() would find
// empty ones without end in some texts, "," among them.
std::vector<YAML::Mark> first_documents(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStarts starts;
  while (starts.marks.size() < 2 && parser.HandleNextDocument(starts)) {
  }
  return std::move(starts.marks);
}

// The library takes some control characters for the end of its input.
Status check_text(std::string_view text, const std::string& path) {
  int line = 1;
  for (const char c : text) {
    if (c == '\n') ++line;
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 && c != '\n' && c != '\r' && c != '\t') {
      return yaml_error(path, line, fmt::format("control character 0x{:02x}", byte));
    }
  }
  if (!valid_utf8(text)) return usage_error(fmt::format("{}: not UTF-8 text", path));
  return {};
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  const auto member =
      std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.key == key; });
  return member == members.end() ? nullptr : &member->value;
}

Error yaml_error(const std::string& path, int line, const std::string& message) {
  return usage_error(fmt::format("{}:{}: {}", path, line, one_line(message)));
}

Result<YamlNode> parse_yaml(std::string_view text, const std::string& path) {
  TRY(check_text(text, path));
  try {
    const std::vector<YAML::Mark> documents = first_documents(std::string(text));
    if (documents.empty()) return yaml_error(path, 1, "the file is empty");
    if (documents.size() > 1) {
      return yaml_error(path, line_of(documents[1]), "a second document: one was expected");
    }
    return Converter{path}.convert(YAML::Load(std::string(text)), 0);
  } catch (const YAML::Exception& error) {
    return yaml_error(path, line_of(error.mark), error.msg);
  } catch (const std::exception& error) {
    return usage_error(fmt::format("{}: not YAML: {}", path, error.what()));
  }
}

}  // namespace reckon
