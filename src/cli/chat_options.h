// Options of the commands that put a text into a chat template.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/chat_template.h"

namespace reckon::cli {

struct ChatOptions {
  std::optional<std::string> system;
  std::string chat_template;  // a format's name; empty: the checkpoint's own
  std::string thinking;       // "on", "off"; empty: as the template has it
};

// --system, --chat-template, --thinking; gives them for excludes().
std::vector<CLI::Option*> add_chat_options(CLI::App& command, ChatOptions& options);

// The template that the options name, or the checkpoint's own.
[[nodiscard]] Result<ChatTemplate> choose_template(const Checkpoint& checkpoint,
                                                   const ChatOptions& options);

}  // namespace reckon::cli
