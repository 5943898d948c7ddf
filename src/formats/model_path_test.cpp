#include "formats/model_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/program_path.h"
#include "formats/test_files.h"

namespace reckon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Sets an environment variable and puts the old value back.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    if (old_) {
      setenv(name_, old_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(ModelPath, FilesAndFoldersStayAsTheyAre) {
  const TestFolder folder;
  const std::string file = folder.write("model.gguf", "x");
  EXPECT_EQ(resolve_model(file).value(), file);
  EXPECT_EQ(resolve_model(folder.path()).value(), folder.path());
}

TEST(ModelPath, FetchedNamesResolveToTheCache) {
  const TestFolder folder;
  const Environment cache("XDG_CACHE_HOME", folder.path());
  EXPECT_EQ(model_cache_folder(), folder.path() + "/reckon/models");
  const auto absent = resolve_model("smollm2");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(absent.error().message, HasSubstr("scripts/get-model smollm2"));
  std::filesystem::create_directories(model_cache_folder());
  const std::string path = folder.write("reckon/models/smollm2.gguf", "x");
  EXPECT_EQ(resolve_model("smollm2").value(), path);
}

// Makes NAME a folder that counts as a model.
void add_model(const TestFolder& folder, const std::string& name) {
  std::filesystem::create_directories(folder.path() + "/" + name);
  (void)folder.write(name + "/config.json", "{}");
}

TEST(ModelPath, AShippedModelIsFoundFromABuildFolderUpward) {
  const TestFolder folder;
  const std::string program = folder.path() + "/build/release/reckon";
  EXPECT_EQ(shipped_folder("tiny", program), "");
  std::filesystem::create_directories(folder.path() + "/models/tiny");
  EXPECT_EQ(shipped_folder("tiny", program), "") << "a folder without config.json is no model";
  add_model(folder, "models/tiny");
  EXPECT_EQ(shipped_folder("tiny", program), folder.path() + "/models/tiny");
  EXPECT_EQ(shipped_folder("other", program), "");
  EXPECT_EQ(shipped_folder("tiny", ""), "");
}

TEST(ModelPath, AShippedModelIsFoundWhereItWasInstalled) {
  const TestFolder folder;
  add_model(folder, "models/tiny");
  add_model(folder, "usr/share/reckon/models/tiny");
  EXPECT_EQ(shipped_folder("tiny", folder.path() + "/usr/bin/reckon"),
            folder.path() + "/usr/share/reckon/models/tiny")
      << "the nearest counts";
  EXPECT_EQ(shipped_folder("tiny", folder.path() + "/opt/bin/reckon"),
            folder.path() + "/models/tiny");
}

TEST(ModelPath, TinyIsTheModelAboveThisProgram) {
  const std::string expected = shipped_folder("tiny", program_path());
  const auto path = resolve_model("tiny");
  if (!expected.empty()) {
    EXPECT_EQ(path.value(), expected);
    return;
  }
  ASSERT_FALSE(path.ok());
  EXPECT_EQ(path.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(path.error().message,
              AllOf(HasSubstr("models/tiny"), HasSubstr("share/reckon/models/tiny"),
                    HasSubstr(program_path())));
}

TEST(ModelPath, ARelativeCacheIsIgnored) {
  const Environment cache("XDG_CACHE_HOME", "relative");
  const Environment home("HOME", "/somewhere");
  EXPECT_EQ(model_cache_folder(), "/somewhere/.cache/reckon/models");
}

TEST(ModelPath, UnknownNamesAreUsageErrors) {
  for (const char* typed :
       {"", "smolm2", "gpt-7", "no/such/file.gguf", "synth:lama-8b", "synth:"}) {
    const auto path = resolve_model(typed);
    ASSERT_FALSE(path.ok()) << typed;
    EXPECT_EQ(path.error().kind, ErrorKind::kUsage) << typed;
  }
  EXPECT_THAT(resolve_model("smolm2").error().message, HasSubstr("did you mean 'smollm2'?"));
  EXPECT_THAT(resolve_model("gpt-7").error().message, Not(HasSubstr("did you mean")));
  EXPECT_THAT(resolve_model("synth:lama-8b").error().message,
              HasSubstr("did you mean 'synth:llama-8b'?"));
}

TEST(ModelPath, SyntheticNamesBecomeShort) {
  EXPECT_EQ(resolve_model("synth:llama-8b").value(), "synth:llama-8b");
  EXPECT_EQ(resolve_model("synth:llama-8b,seed=0,layers=32").value(), "synth:llama-8b");
  EXPECT_EQ(resolve_model("synth:llama-8b,seed=7,layers=4").value(),
            "synth:llama-8b,layers=4,seed=7");
}

}  // namespace
}  // namespace reckon
