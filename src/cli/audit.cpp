#include "cli/audit.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/text.h"
#include "cli/table.h"

namespace reckon::cli {

void add_audit_option(CLI::App& command, bool& audit) {
  command.add_flag("--audit-buffers", audit,
                   "list what was allocated and never read (exit code 4: some was)");
}

std::string audit_text(const engine::AuditReport& report) {
  if (report.unread.empty()) {
    return fmt::format("every buffer was read ({}, {})\n", counted(report.buffers, "buffer"),
                       format_bytes_short(report.bytes));
  }
  Table table({{"buffer"}, {"tag"}, {"size", Align::kRight}, {"why listed"}});
  uint64_t unread_bytes = 0;
  for (const engine::UnreadBuffer& buffer : report.unread) {
    table.add({buffer.name, std::string(memory_tag_name(buffer.tag)),
               format_bytes_short(buffer.bytes), buffer.reason});
    unread_bytes += buffer.bytes;
  }
  return fmt::format("{}never read: {} of {}, {} of {}\n", table.text(), report.unread.size(),
                     counted(report.buffers, "buffer"), format_bytes_short(unread_bytes),
                     format_bytes_short(report.bytes));
}

nlohmann::json audit_json(const engine::AuditReport& report) {
  nlohmann::json unread = nlohmann::json::array();
  for (const engine::UnreadBuffer& buffer : report.unread) {
    unread.push_back({{"name", buffer.name},
                      {"tag", memory_tag_name(buffer.tag)},
                      {"bytes", buffer.bytes},
                      {"reason", buffer.reason}});
  }
  return {{"buffers", report.buffers}, {"bytes", report.bytes}, {"unread", unread}};
}

ExitCode conclude_audit(const engine::AuditReport& report) {
  std::fflush(stdout);
  std::fputs(audit_text(report).c_str(), stderr);
  return report.unread.empty() ? kExitDone : kExitCheckFailed;
}

}  // namespace reckon::cli
