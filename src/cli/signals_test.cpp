// What signals do, in processes of their own.
#include "cli/signals.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "cli/command_testing.h"
#include "formats/mapped_file.h"

namespace reckon::cli {
namespace {

using testing::HasSubstr;

// What the action does to a child of this process that main() has prepared: the code of a shell.
Finished in_a_child(const Sandbox& sandbox, const std::function<void()>& action) {
  const std::string err = sandbox.path("stderr").string();
  const pid_t child = fork();
  if (child == 0) {
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    prepare_signals();
    action();
    _exit(0);
  }
  int status = 0;
  (void)waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), "", file_text(err)};
}

int first_byte(const volatile char* memory) {
  return *memory;
}

TEST(Signals, AModelFileThatIsCutShortIsNamed) {
  Sandbox sandbox;
  const std::string path = sandbox.write("model", std::string(100'000, 'x'));
  const Finished finished = in_a_child(sandbox, [&] {
    const auto file = MappedFile::open(path);
    if (!file.ok() || truncate(path.c_str(), 0) != 0) _exit(99);
    (void)first_byte(file->bytes().data() + 50'000);
  });
  EXPECT_EQ(finished.code, 1);
  EXPECT_TRUE(finished.one_error_line()) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr(path + ": the file was cut short or changed while"));
}

TEST(Signals, OtherBusErrorsEndTheProgramAsEver) {
  Sandbox sandbox;
  const std::string path = sandbox.write("other", std::string(100'000, 'x'));
  const Finished mapped = in_a_child(sandbox, [&] {
    const int fd = open(path.c_str(), O_RDONLY);
    void* memory = mmap(nullptr, 100'000, PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED || truncate(path.c_str(), 0) != 0) _exit(99);
    (void)first_byte(static_cast<const char*>(memory) + 50'000);
  });
  EXPECT_EQ(mapped.code, 128 + SIGBUS);
  EXPECT_EQ(mapped.err, "");
  const Finished sent = in_a_child(sandbox, [] { (void)kill(getpid(), SIGBUS); });
  EXPECT_EQ(sent.code, 128 + SIGBUS);
}

TEST(Signals, ALimitOfFileSizesIsAnErrorOfTheFile) {
  Sandbox sandbox;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{20'000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const pid_t child = sandbox.start({"synth", "tiny-llama", "-o", "made"});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  const Finished finished = sandbox.finish(child);
  EXPECT_EQ(finished.code, 1) << finished.err;
  EXPECT_TRUE(finished.one_error_line()) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("File too large"));
}

}  // namespace
}  // namespace reckon::cli
