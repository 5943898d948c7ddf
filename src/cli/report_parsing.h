// A strict reader of the report's pages, for tests: every element closed in order, every attribute
// quoted, no stray '<' or '&'. It fails where a browser would guess.
#pragma once

#include <cctype>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reckon::cli {

struct HtmlNode {
  std::string tag;
  std::map<std::string, std::string> attributes;
  std::string text;  // its own and that of what it holds, unescaped
  std::vector<HtmlNode> children;

  // Every element below it with this tag, in order.
  [[nodiscard]] std::vector<const HtmlNode*> all(std::string_view wanted) const {
    std::vector<const HtmlNode*> found;
    for (const HtmlNode& child : children) {
      if (child.tag == wanted) found.push_back(&child);
      for (const HtmlNode* below : child.all(wanted)) found.push_back(below);
    }
    return found;
  }
  // nullptr where there is none.
  [[nodiscard]] const HtmlNode* by_id(std::string_view id) const {
    for (const HtmlNode& child : children) {
      const auto found = child.attributes.find("id");
      if (found != child.attributes.end() && found->second == id) return &child;
      if (const HtmlNode* below = child.by_id(id)) return below;
    }
    return nullptr;
  }
  [[nodiscard]] std::vector<const HtmlNode*> with_class(std::string_view name) const {
    std::vector<const HtmlNode*> found;
    for (const HtmlNode& child : children) {
      const auto style = child.attributes.find("class");
      if (style != child.attributes.end() &&
          (" " + style->second + " ").find(" " + std::string(name) + " ") != std::string::npos) {
        found.push_back(&child);
      }
      for (const HtmlNode* below : child.with_class(name)) found.push_back(below);
    }
    return found;
  }
};

class HtmlReader {
 public:
  // "" where the page is well formed, else what is wrong and where.
  static std::string read(std::string_view page, HtmlNode& root) {
    HtmlReader reader(page);
    constexpr std::string_view kType = "<!DOCTYPE html>\n";
    if (!page.starts_with(kType)) return "no document type";
    reader.at_ = kType.size();
    reader.content(root);
    if (reader.error_.empty() && reader.at_ != page.size()) reader.fail("more than one root");
    return reader.error_;
  }

 private:
  explicit HtmlReader(std::string_view page) : page_(page) {}

  void fail(const std::string& what) {
    if (error_.empty()) {
      error_ = what + " at: " + std::string(page_.substr(at_, 60));
    }
  }
  bool take(std::string_view text) {
    if (!page_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  std::string word() {
    std::string word;
    while (at_ < page_.size() &&
           (std::isalnum(static_cast<unsigned char>(page_[at_])) != 0 || page_[at_] == '-')) {
      word += page_[at_++];
    }
    if (word.empty()) fail("a name expected");
    return word;
  }
  // Up to `end`, which is not taken.
  std::string text(char end) {
    constexpr std::pair<std::string_view, char> kNames[] = {
        {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}};
    std::string plain;
    while (at_ < page_.size() && page_[at_] != end && error_.empty()) {
      bool named = false;
      for (const auto& [name, c] : kNames) {
        if (take(name)) {
          plain += c;
          named = true;
          break;
        }
      }
      if (named) continue;
      if (page_[at_] == '&' || page_[at_] == '<') fail("unescaped");
      plain += page_[at_++];
    }
    return plain;
  }
  void element(HtmlNode& node) {
    node.tag = word();
    while (take(" ")) {
      const std::string name = word();
      if (!take("=\"")) fail("a quoted value expected");
      if (!node.attributes.emplace(name, text('"')).second) fail("an attribute twice");
      take("\"");
    }
    if (take("/>")) return;
    if (!take(">")) fail("'>' expected");
    if (node.tag == "style" || node.tag == "script") {
      const size_t end = page_.find("</", at_);
      node.text = page_.substr(at_, end - at_);
      at_ = end;
    } else {
      content(node);
    }
    if (!take("</" + node.tag + ">")) fail("</" + node.tag + "> expected");
  }
  void content(HtmlNode& node) {
    while (error_.empty() && at_ < page_.size() && !page_.substr(at_).starts_with("</")) {
      if (take("<")) {
        node.children.emplace_back();
        element(node.children.back());
        node.text += node.children.back().text;
      } else {
        node.text += text('<');
      }
    }
  }

  std::string_view page_;
  size_t at_ = 0;
  std::string error_;
};

}  // namespace reckon::cli
