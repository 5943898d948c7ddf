#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "cli/command_testing.h"

namespace reckon::cli {
namespace {

using testing::HasSubstr;

// A recorded prompt and its greedy continuation (beside the model).
nlohmann::json recorded_prompt(size_t index) {
  return nlohmann::json::parse(
      file_text(golden_path("gguf/tiny-llama-mixed.oracle.json")))["prompts"][index];
}

std::vector<std::string> run_recorded(size_t index, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {
      "run", "-m", tiny_model(), "--raw", "-p", recorded_prompt(index)["text"], "-n", "16"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// Shipped tile rules are noted where a model is outside their conditions, as a tiny one is.
const std::vector<std::string> kNoRules = {"--set", "prefill.tile_rules=none"};

TEST(Run, GivesTheRecordedContinuation) {
  Sandbox sandbox;
  const nlohmann::json prompt = recorded_prompt(0);
  const Finished finished = sandbox.run(run_recorded(0, {"--set", "numerics=reference", "--json"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  const nlohmann::json json = finished.json();
  EXPECT_EQ(json["tokens"], prompt["greedy"]);
  EXPECT_EQ(json["prompt_tokens"], prompt["length"]);
  EXPECT_EQ(json["stop"], "token limit");
  EXPECT_EQ(json["switches"], nlohmann::json({{"numerics", "reference"}}));
}

TEST(Run, PrintsOneJsonDocumentWithStableKeys) {
  Sandbox sandbox;
  const Finished finished = sandbox.run(run_recorded(0, {"--json"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");
  const nlohmann::json json = finished.json();
  for (const char* key :
       {"text", "tokens", "stop", "prompt_tokens", "prefill_ms", "prefill_tok_per_s", "decode_ms",
        "decode_tok_per_s", "peak_bytes", "context", "chunk", "threads", "temperature", "seed",
        "switches", "fingerprint"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_GT(json["peak_bytes"], 0);
  EXPECT_EQ(json["context"], 128);  // 77 + 16, rounded up
}

TEST(Run, StreamsTheSameTextAndEndsItsLine) {
  Sandbox sandbox;
  const Finished text = sandbox.run(run_recorded(0, kNoRules));
  const Finished json = sandbox.run(run_recorded(0, {"--json"}));
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.out, json.json()["text"].get<std::string>() + "\n");
  EXPECT_EQ(lines_of(text.err).size(), 1u);
  EXPECT_THAT(text.err, HasSubstr("77 prompt tokens at "));
  EXPECT_THAT(text.err, HasSubstr("16 generated at "));
  EXPECT_THAT(text.err, HasSubstr("stop: token limit"));
  EXPECT_THAT(text.err, HasSubstr("peak memory "));
  EXPECT_EQ(sandbox.run(run_recorded(0, {"--quiet"})).err, "");
}

TEST(Run, GivesTheSameTokensForEveryChunk) {
  Sandbox sandbox;
  const nlohmann::json whole = sandbox.run(run_recorded(0, {"--json"})).json();
  for (const char* chunk : {"1", "7", "64"}) {
    const nlohmann::json cut =
        sandbox
            .run(run_recorded(0, {"--json", "--chunk", chunk, "--set", "prefill.numerics=exact"}))
            .json();
    EXPECT_EQ(cut["tokens"], whole["tokens"]) << chunk;
    EXPECT_EQ(cut["chunk"], std::stoi(chunk));
  }
}

TEST(Run, DraftsForTheSameTokensAndSaysWhatCameOfIt) {
  Sandbox sandbox;
  const nlohmann::json plain = sandbox.run(run_recorded(0, {"--json"})).json();
  EXPECT_FALSE(plain.contains("speculation"));
  const std::vector<std::string> drafting = {
      "--set", "decode.drafter=replay:1", "--set", "decode.mtp_depth=3", kNoRules[0], kNoRules[1]};
  std::vector<std::string> as_json = drafting;
  as_json.emplace_back("--json");
  const nlohmann::json json = sandbox.run(run_recorded(0, as_json)).json();
  EXPECT_EQ(json["tokens"], plain["tokens"]);
  ASSERT_EQ(json["notes"].size(), 1U);
  EXPECT_THAT(json["notes"][0].get<std::string>(), HasSubstr("replay:1 takes its drafts from a"));
  const nlohmann::json& drafts = json["speculation"];
  EXPECT_EQ(drafts["drafter"], "replay:1");
  EXPECT_EQ(drafts["depth"], 3);
  EXPECT_EQ(drafts["passes"], 4);  // 15 tokens, 4 a pass
  EXPECT_EQ(drafts["tokens_per_pass"], 3.75);
  EXPECT_GT(drafts["ms_per_pass"], 0);
  ASSERT_EQ(drafts["by_depth"].size(), 3U);
  EXPECT_EQ(drafts["by_depth"][2]["depth"], 3);
  EXPECT_EQ(drafts["by_depth"][2]["acceptance"], 1.0);
  EXPECT_EQ(drafts["by_rows"][0]["rows"], 1);
  EXPECT_EQ(drafts["by_rows"][0]["cost"], 1.0);
  EXPECT_TRUE(drafts.contains("break_even"));

  const Finished text = sandbox.run(run_recorded(0, drafting));
  const std::vector<std::string> lines = lines_of(text.err);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0], HasSubstr("recorded run"));
  EXPECT_THAT(lines[2], HasSubstr("drafts by replay:1: 3.75 tokens a pass, 4 passes of "));
  EXPECT_THAT(lines[2], HasSubstr("accepted by depth 100 %, 100 %, 100 %"));
  EXPECT_THAT(lines[2], HasSubstr("3 drafts cost "));
}

TEST(Run, UsesTheChatTemplateUnlessRaw) {
  Sandbox sandbox;
  const auto prompt_tokens = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"run", "-m", tiny_model(), "-n", "0", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = sandbox.run(arguments);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return finished.json()["prompt_tokens"].get<int>();
  };
  const int raw = prompt_tokens({"-p", "Hello", "--raw"});
  const int chat = prompt_tokens({"-p", "Hello"});
  const int system = prompt_tokens({"-p", "Hello", "--system", "Be brief and then stop. Or not."});
  EXPECT_LT(raw, chat);
  EXPECT_NE(chat, system);
}

TEST(Run, RefusesASystemMessageWithoutATemplate) {
  Sandbox sandbox;
  const std::string plain = golden_path("gguf/tiny-llama-v2.gguf");
  const Finished system = sandbox.run({"run", "-m", plain, "-p", "a", "--system", "b"});
  EXPECT_EQ(system.code, 2);
  EXPECT_TRUE(system.one_error_line());
  EXPECT_EQ(sandbox.run({"run", "-m", plain, "-p", "a", "-n", "2"}).code, 0);
}

TEST(Run, ReadsThePromptFromAFileOrStdin) {
  Sandbox sandbox;
  sandbox.write("prompt.txt", "Once upon a time");
  const std::vector<std::string> common = {"run", "-m", tiny_model(), "-n", "4", "--raw", "--json"};
  const auto tokens = [&](std::vector<std::string> more, std::string_view input) {
    more.insert(more.begin(), common.begin(), common.end());
    return sandbox.run(more, input).json()["tokens"];
  };
  const nlohmann::json direct = tokens({"-p", "Once upon a time"}, "");
  ASSERT_TRUE(direct.is_array());
  EXPECT_EQ(tokens({"-f", "prompt.txt"}, ""), direct);
  EXPECT_EQ(tokens({"-f", "-"}, "Once upon a time"), direct);
  const Finished absent = sandbox.run({"run", "-m", tiny_model(), "-f", "absent.txt"});
  EXPECT_EQ(absent.code, 2);
  EXPECT_TRUE(absent.one_error_line());
  EXPECT_THAT(absent.err, HasSubstr("absent.txt: no such file"));
  ASSERT_EQ(mkfifo(sandbox.path("pipe").c_str(), 0600), 0);
  const Finished pipe = sandbox.run({"run", "-m", tiny_model(), "-f", "pipe"});
  EXPECT_EQ(pipe.code, 2);
  EXPECT_THAT(pipe.err, HasSubstr("pipe: is a pipe, not a file"));
  const Finished folder = sandbox.run({"run", "-m", tiny_model(), "-f", "."});
  EXPECT_EQ(folder.code, 2);
  EXPECT_THAT(folder.err, HasSubstr("is a folder, not a file"));
}

TEST(Run, SamplesTheSameTokensForTheSameSeed) {
  Sandbox sandbox;
  const auto tokens = [&](const char* seed) {
    return sandbox.run(run_recorded(1, {"--temperature", "1.5", "--seed", seed, "--json"}))
        .json()["tokens"];
  };
  EXPECT_EQ(tokens("7"), tokens("7"));
  EXPECT_NE(tokens("7"), tokens("8"));
}

TEST(Run, FiltersPenalisesAndSaysSo) {
  Sandbox sandbox;
  const nlohmann::json greedy = sandbox.run(run_recorded(1, {"--json"})).json();
  const nlohmann::json first =
      sandbox.run(run_recorded(1, {"--temperature", "2", "--top-k", "1", "--json"})).json();
  EXPECT_EQ(first["tokens"], greedy["tokens"]);
  EXPECT_EQ(first["top_k"], 1);
  const nlohmann::json filtered =
      sandbox
          .run(run_recorded(1, {"--temperature", "2", "--top-p", "0.9", "--min-p", "0.01",
                                "--repeat-penalty", "1.2", "--repeat-last", "9", "--json"}))
          .json();
  EXPECT_NE(filtered["tokens"], greedy["tokens"]);
  EXPECT_EQ(filtered["repeat_last"], 9);
  for (const auto& [option, value] : std::map<std::string, std::string>{
           {"--top-p", "0"}, {"--top-p", "1.5"}, {"--min-p", "2"}, {"--repeat-penalty", "0"}}) {
    const Finished refused = sandbox.run(run_recorded(1, {option, value}));
    EXPECT_EQ(refused.code, 2) << option;
    EXPECT_TRUE(refused.one_error_line()) << refused.err;
  }
}

TEST(Run, StopsBeforeAStopText) {
  Sandbox sandbox;
  const std::string whole = sandbox.run(run_recorded(0, {"--json"})).json()["text"];
  const std::string stop = whole.substr(whole.size() / 2, 4);
  const Finished finished = sandbox.run(run_recorded(0, {"--stop", "none", "--stop", stop}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.out, whole.substr(0, whole.find(stop)) + "\n");
  EXPECT_THAT(finished.err, HasSubstr("stop: stop text"));
  EXPECT_EQ(sandbox.run(run_recorded(0, {"--stop", ""})).code, 2);
}

TEST(Run, StopsWhereTheContextIsFull) {
  Sandbox sandbox;
  const Finished finished = sandbox.run(run_recorded(0, {"--ctx", "80", "--json"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.json()["stop"], "context full");
  EXPECT_EQ(finished.json()["tokens"].size(), 4u);  // 3 in the cache, and one after the last
}

TEST(Run, WritesItsTrace) {
  Sandbox sandbox;
  const Finished finished = sandbox.run(run_recorded(0, {"--trace", "trace.json", "--json"}));
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto trace = nlohmann::json::parse(file_text(sandbox.path("trace.json")));
  EXPECT_EQ(trace["fingerprint"], finished.json()["fingerprint"]);
  ASSERT_FALSE(trace["rows"].empty());
  for (const char* key : {"phase", "op", "shape", "variant", "params", "source_hash", "calls"}) {
    EXPECT_TRUE(trace["rows"][0].contains(key)) << key;
  }
  const Finished nowhere = sandbox.run(run_recorded(0, {"--trace", "no/folder/trace.json"}));
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_EQ(nowhere.out, "");  // it says so before it generates
}

TEST(Run, AuditsItsBuffers) {
  Sandbox sandbox;
  const Finished all_read = sandbox.run(run_recorded(0, {"--audit-buffers"}));
  EXPECT_EQ(all_read.code, 0) << all_read.err;
  EXPECT_THAT(lines_of(all_read.err).back(), HasSubstr("every buffer was read ("));
  EXPECT_FALSE(sandbox.run(run_recorded(0, {"--json"})).json().contains("audit"));

  // Nothing is generated, so that nobody looks at the logits of the prompt.
  const Finished unread = sandbox.run(
      {"run", "-m", tiny_model(), "--raw", "-p", "Once", "-n", "0", "--json", "--audit-buffers"});
  EXPECT_EQ(unread.code, 4);
  const nlohmann::json audit = unread.json()["audit"];
  ASSERT_EQ(audit["unread"].size(), 1u);
  EXPECT_EQ(audit["unread"][0]["name"], "logits");
  EXPECT_EQ(audit["unread"][0]["tag"], "activations");
  EXPECT_EQ(audit["unread"][0]["reason"], "written, but never read");
  EXPECT_GT(audit["bytes"], audit["unread"][0]["bytes"]);
  EXPECT_THAT(unread.err, HasSubstr("why listed"));
  EXPECT_THAT(unread.err, HasSubstr("never read: 1 of "));
}

TEST(Run, RefusesWhatDoesNotFitTheMemory) {
  Sandbox sandbox;
  const Finished finished = sandbox.run(run_recorded(0, {"--memory-limit", "64KiB"}));
  EXPECT_EQ(finished.code, 3);
  EXPECT_EQ(finished.out, "");
  EXPECT_TRUE(finished.one_error_line()) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("the memory limit 64KiB"));
}

TEST(Run, NeedsATokenizer) {
  Sandbox sandbox;
  const Finished finished = sandbox.run({"run", "-m", golden_path("oracle/llama-s0"), "-p", "a"});
  EXPECT_EQ(finished.code, 1);
  EXPECT_TRUE(finished.one_error_line());
  EXPECT_THAT(finished.err, HasSubstr("tokenizer"));
}

// A run of six tokens and one of ten more are one of sixteen.
TEST(RunState, GoesOnWhereTheOtherRunEnded) {
  Sandbox sandbox;
  const nlohmann::json whole = sandbox.run(run_recorded(0, {"--json"})).json();
  for (const char* penalty : {"1", "1.3"}) {
    const std::vector<std::string> more = {"--repeat-penalty", penalty, "--json"};
    std::vector<std::string> first = run_recorded(0, more);
    const nlohmann::json all = sandbox.run(first).json();
    first.insert(first.end(), {"-n", "6", "--save-state", "a.state"});
    first.erase(std::ranges::find(first, "16") - 1, std::ranges::find(first, "16") + 1);
    const Finished saved = sandbox.run(first);
    ASSERT_EQ(saved.code, 0) << saved.err;
    std::vector<std::string> second = {"run",     "-m", tiny_model(), "--load-state",
                                       "a.state", "-n", "10"};
    second.insert(second.end(), more.begin(), more.end());
    const Finished loaded = sandbox.run(second);
    ASSERT_EQ(loaded.code, 0) << loaded.err;
    nlohmann::json tokens = saved.json()["tokens"];
    const nlohmann::json rest = loaded.json();
    for (const auto& token : rest["tokens"]) tokens.push_back(token);
    EXPECT_EQ(tokens, all["tokens"]);
    EXPECT_EQ(saved.json()["saved_tokens"], whole["prompt_tokens"].get<int>() + 5);
    EXPECT_EQ(loaded.json()["loaded_tokens"], saved.json()["saved_tokens"]);
    EXPECT_EQ(loaded.json()["prompt_tokens"], 1);
  }
}

TEST(RunState, TakesAPromptBehindIt) {
  Sandbox sandbox;
  const std::string text = recorded_prompt(0)["text"];
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"run", "-m", tiny_model(), "--set",
                                          "prefill.numerics=exact"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return sandbox.run(arguments);
  };
  const Finished saved = run({"--raw", "-p", text, "-n", "0", "--save-state", "a.state"});
  ASSERT_EQ(saved.code, 0) << saved.err;
  EXPECT_THAT(saved.err, HasSubstr("note: saved the state behind"));
  const Finished loaded = run({"--load-state", "a.state", "-p", "\n\nAnd", "-n", "8", "-q"});
  const Finished whole = run({"--raw", "-p", text + "\n\nAnd", "-n", "8", "-q"});
  EXPECT_EQ(loaded.code, 0) << loaded.err;
  EXPECT_EQ(loaded.out, whole.out);
  EXPECT_EQ(loaded.err, "");
  const Finished nothing = run({"--load-state", "a.state"});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("nothing to run: the saved state ends"));
}

TEST(RunState, IsRefusedInOneLine) {
  Sandbox sandbox;
  const std::vector<std::string> run = {"run", "-m", tiny_model(), "-p", "Hi", "--raw", "-n", "2"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = run;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return sandbox.run(arguments);
  };
  ASSERT_EQ(with({"--save-state", "a.state"}).code, 0);
  struct Case {
    std::vector<std::string> more;
    int code;
    const char* problem;
  };
  sandbox.write("torn.state", file_text(sandbox.path("a.state")).substr(0, 300));
  sandbox.write("text.state", "Once upon a time");
  std::filesystem::create_directory(sandbox.path("folder"));
  for (const Case& wrong :
       {Case{{"--load-state", "none.state"}, 2, "none.state: no such file"},
        Case{{"--load-state", "torn.state"}, 1, "torn.state: the saved state is cut short"},
        Case{{"--load-state", "text.state"}, 1, "text.state: expected a saved state"},
        Case{{"--load-state", "a.state", "--set", "numerics=reference"}, 3, "saved with numerics"},
        Case{{"--load-state", "a.state", "--quant", "q8"}, 3, "saved with weights in"},
        Case{{"--load-state", "a.state", "--ctx", "3"}, 2, "more than the 3 of --ctx"},
        Case{{"--load-state", "a.state", "--system", "Be brief."}, 2, "excludes"},
        Case{{"--save-state", "folder"}, 2, "folder: is a folder"},
        Case{{"--save-state", "none/b.state"}, 1, "none/"},
        Case{{"--save-state", tiny_model()}, 2, "is a file of the model"}}) {
    const Finished finished = with(wrong.more);
    EXPECT_EQ(finished.code, wrong.code) << wrong.problem << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_TRUE(finished.one_error_line()) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(wrong.problem));
  }
}

}  // namespace
}  // namespace reckon::cli
