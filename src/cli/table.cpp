#include "cli/table.h"

#include <algorithm>

#include "base/check.h"
#include "cli/page.h"

namespace reckon::cli {
namespace {

std::string csv_cell(const std::string& cell) {
  if (cell.find_first_of(",\"\n\r") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

void trim_line(std::string& text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  text += '\n';
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> cells) {
  RECKON_CHECK(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(display_width(column.title));
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string text;
  const auto append = [&](const std::string& cell, size_t i) {
    const std::string padding(widths[i] - display_width(cell), ' ');
    if (i > 0) text += "  ";
    text += columns_[i].align == Align::kRight ? padding + cell : cell + padding;
  };
  for (size_t i = 0; i < columns_.size(); ++i) append(columns_[i].title, i);
  trim_line(text);
  for (size_t i = 0; i < columns_.size(); ++i) append(std::string(widths[i], '-'), i);
  trim_line(text);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) append(row[i], i);
    trim_line(text);
  }
  return text;
}

std::string Table::csv() const {
  std::string text;
  const auto append = [&text](const std::string& cell, size_t i) {
    if (i > 0) text += ',';
    text += csv_cell(cell);
  };
  for (size_t i = 0; i < columns_.size(); ++i) append(columns_[i].title, i);
  text += '\n';
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) append(row[i], i);
    text += '\n';
  }
  return text;
}

}  // namespace reckon::cli
