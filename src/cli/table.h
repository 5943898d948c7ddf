// Plain text tables for terminals and pipes: columns padded to their widest cell, numbers to the
// right, at most 100 columns wide where the content allows.
#pragma once

#include <string>
#include <vector>

namespace reckon::cli {

enum class Align { kLeft, kRight };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };
  explicit Table(std::vector<Column> columns);

  void add(std::vector<std::string> cells);  // as many as there are columns
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  // Two spaces between columns, a rule under the titles, every line ending in a newline.
  [[nodiscard]] std::string text() const;
  // The same as CSV (RFC 4180), titles first.
  [[nodiscard]] std::string csv() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace reckon::cli
