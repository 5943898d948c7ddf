#include "cli/line_input.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string_view>
#include <thread>

#include "cli/signals.h"

namespace reckon::cli {
namespace {

using Event = LineInput::Event;

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) ADD_FAILURE() << "no pipe";
  }
  ~Pipe() {
    end();
    close(ends_[0]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  [[nodiscard]] int source() const { return ends_[0]; }
  void send(std::string_view text) const {
    EXPECT_EQ(write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void end() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

Event next(LineInput& input, std::string& line) {
  const Result<Event> event = input.next(line);
  EXPECT_TRUE(event.ok());
  return event.ok() ? *event : Event::kEnd;
}

TEST(LineInput, GivesALineAtATime) {
  Pipe pipe;
  pipe.send("one\r\n\ntwo\nthr");
  LineInput input(pipe.source(), 100);
  std::string line;
  for (const std::string_view expected : {"one", "", "two"}) {
    EXPECT_EQ(next(input, line), Event::kLine);
    EXPECT_EQ(line, expected);
  }
  pipe.send("ee");
  pipe.end();
  EXPECT_EQ(next(input, line), Event::kLine);
  EXPECT_EQ(line, "three");
  EXPECT_EQ(next(input, line), Event::kEnd);
}

TEST(LineInput, SkipsALineThatIsTooLong) {
  Pipe pipe;
  const std::string most(100, 'x');
  pipe.send(most + "x\n" + most + "\nend\n" + most + most);
  pipe.end();
  LineInput input(pipe.source(), most.size());
  std::string line;
  EXPECT_EQ(next(input, line), Event::kTooLong);
  EXPECT_EQ(next(input, line), Event::kLine);
  EXPECT_EQ(line, most);
  EXPECT_EQ(next(input, line), Event::kLine);
  EXPECT_EQ(line, "end");
  EXPECT_EQ(next(input, line), Event::kTooLong);
  EXPECT_EQ(next(input, line), Event::kEnd);
}

TEST(LineInput, SaysWhyItCannotBeRead) {
  const int folder = open("/", O_RDONLY | O_CLOEXEC);
  LineInput input(folder, 100);
  std::string line;
  const Result<Event> event = input.next(line);
  close(folder);
  ASSERT_FALSE(event.ok());
  EXPECT_EQ(event.error().message, "cannot read standard input: Is a directory");
}

TEST(LineInput, DropsTheLineThatCtrlCCameInto) {
  Pipe pipe;
  pipe.send("abandoned");
  const Interrupts interrupts;
  LineInput input(pipe.source(), 100);
  std::string line;
  std::thread other([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    (void)raise(SIGINT);  // on this thread, so that no call of the reader's fails by it
  });
  EXPECT_EQ(next(input, line), Event::kInterrupted);
  other.join();
  EXPECT_TRUE(Interrupts::take());
  EXPECT_FALSE(Interrupts::pending());
  pipe.send("kept\n");
  EXPECT_EQ(next(input, line), Event::kLine);
  EXPECT_EQ(line, "kept");
  // One that came before the wait is seen as well.
  (void)raise(SIGINT);
  pipe.send("later\n");
  EXPECT_EQ(next(input, line), Event::kInterrupted);
  EXPECT_TRUE(Interrupts::take());
  EXPECT_EQ(next(input, line), Event::kLine);
  EXPECT_EQ(line, "later");
}

}  // namespace
}  // namespace reckon::cli
