#include "cli/chat_options.h"

#include <fmt/format.h>

#include "cli/options.h"

namespace reckon::cli {
namespace {

Thinking thinking_of(const std::string& word) {
  if (word.empty()) return Thinking::kDefault;
  return word == "on" ? Thinking::kOn : Thinking::kOff;
}

Result<ChatTemplate> named_or_own(const Checkpoint& checkpoint, const std::string& name) {
  if (!name.empty()) return ChatTemplate::from_name(name);
  auto own = ChatTemplate::from_checkpoint(checkpoint);
  if (own.ok()) return own;
  return failed(fmt::format("{}; --chat-template NAME chooses one by hand", own.error().message));
}

}  // namespace

std::vector<CLI::Option*> add_chat_options(CLI::App& command, ChatOptions& options) {
  CLI::Option* system =
      command.add_option("--system", options.system, "system message of the chat template")
          ->type_name("TEXT");
  CLI::Option* name =
      command
          .add_option("--chat-template", options.chat_template,
                      "chatml, llama3, ... (docs/cli.md) instead of the model's own")
          ->type_name("NAME");
  CLI::Option* thinking =
      command.add_option("--thinking", options.thinking, "on or off, of a model that can")
          ->type_name("WORD")
          ->check(one_of({"on", "off"}));
  return {system, name, thinking};
}

Result<ChatTemplate> choose_template(const Checkpoint& checkpoint, const ChatOptions& options) {
  TRY_ASSIGN(ChatTemplate chat, named_or_own(checkpoint, options.chat_template));
  TRY(chat.set_thinking(thinking_of(options.thinking)));
  return chat;
}

}  // namespace reckon::cli
