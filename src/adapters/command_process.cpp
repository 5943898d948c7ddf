#include "adapters/command_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "adapters/command_supervisor.h"
#include "base/text.h"

namespace reckon::adapters {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kClearingUp{10000};  // that a supervisor may take when told to end
constexpr size_t kTailBytes = 400;
constexpr int kReadsAtOnce = 64;

class Fd {
 public:
  Fd() = default;
  ~Fd() { reset(); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd reader, writer;

  Status open() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) {
      return failed(fmt::format("pipe: {}", std::strerror(errno)));
    }
    reader.reset(fds[0]);
    writer.reset(fds[1]);
    return {};
  }
};

// The variables of this process with the job's on top, as execve takes them.
std::vector<std::string> environment_of(const ProcessJob& job) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (!job.env.contains(text.substr(0, text.find('=')))) variables.push_back(text);
  }
  for (const auto& [name, value] : job.env) variables.push_back(name + "=" + value);
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// Reads what there is, up to a bound, so that an endless stream cannot hold us. False at its end.
bool drain(int fd, CapturedOutput& output) {
  char bytes[65536];
  for (int i = 0; i < kReadsAtOnce; ++i) {
    const ssize_t got = ::read(fd, bytes, sizeof bytes);
    if (got > 0) {
      output.append({bytes, static_cast<size_t>(got)});
      if (static_cast<size_t>(got) < sizeof bytes) return true;
    } else if (got == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
  return true;
}

// One program under its supervisor.
class Run {
 public:
  explicit Run(const ProcessJob& job) : job_(job) {}
  ~Run() {
    lifeline_.writer.reset();
    if (supervisor_ > 0) {
      ::kill(supervisor_, SIGKILL);
      reap();
    }
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Status start() {
    for (Pipe* pipe : {&lifeline_, &report_, &output_, &errors_}) TRY(pipe->open());
    std::vector<std::string> arguments = job_.argv;
    std::vector<std::string> variables = environment_of(job_);
    const std::vector<char*> argv = pointers(arguments);
    const std::vector<char*> environment = pointers(variables);
    supervisor_ = ::fork();
    if (supervisor_ < 0) return failed(fmt::format("fork: {}", std::strerror(errno)));
    if (supervisor_ == 0) {
      ::close(lifeline_.writer.get());
      supervise(argv.data(), environment.data(),
                {lifeline_.reader.get(), report_.writer.get(), output_.writer.get(),
                 errors_.writer.get()});
    }
    for (Fd* fd : {&lifeline_.reader, &report_.writer, &output_.writer, &errors_.writer}) {
      fd->reset();
    }
    for (const Pipe* pipe : {&output_, &errors_}) {
      ::fcntl(pipe->reader.get(), F_SETFL, O_NONBLOCK);
    }
    return {};
  }

  // Reads until the supervisor has reported; tells it to end at the time-out.
  Result<ProcessEnd> finish() {
    ProcessEnd end{.output = CapturedOutput(job_.maximum_output_bytes),
                   .errors = CapturedOutput(job_.maximum_output_bytes)};
    auto deadline = steady_clock::now() + job_.timeout;
    bool timed_out = false;
    while (!reported_) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
      if (left <= 0 && timed_out) return failed("a program could not be killed");
      if (left <= 0) {
        timed_out = true;
        lifeline_.writer.reset();
        deadline = steady_clock::now() + kClearingUp;
        continue;
      }
      pump(static_cast<int>(std::min<int64_t>(left, 60000)), end);
      if (report_ended_ && !reported_) return failed("a program's supervisor was killed");
    }
    drain(output_.reader.get(), end.output);
    drain(errors_.reader.get(), end.errors);
    reap();
    if (result_.start_error != 0) {
      return usage_error(fmt::format("'{}' cannot be started: {}", job_.argv.front(),
                                     std::strerror(result_.start_error)));
    }
    describe(timed_out, end);
    return end;
  }

 private:
  void pump(int wait_ms, ProcessEnd& end) {
    pollfd fds[3] = {{output_.reader.get(), POLLIN, 0},
                     {errors_.reader.get(), POLLIN, 0},
                     {report_.reader.get(), POLLIN, 0}};
    if (::poll(fds, 3, wait_ms) <= 0) return;
    if (fds[0].revents != 0 && !drain(output_.reader.get(), end.output)) output_.reader.reset();
    if (fds[1].revents != 0 && !drain(errors_.reader.get(), end.errors)) errors_.reader.reset();
    if (fds[2].revents == 0) return;
    const ssize_t got = ::read(report_.reader.get(), &result_, sizeof result_);
    reported_ = got == sizeof result_;
    report_ended_ = got == 0;
  }

  void describe(bool timed_out, ProcessEnd& end) const {
    const int status = result_.wait_status;
    end.kind = timed_out           ? ProcessEnd::Kind::kTimedOut
               : WIFEXITED(status) ? ProcessEnd::Kind::kExited
                                   : ProcessEnd::Kind::kSignalled;
    end.code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    end.wall_ms = static_cast<double>(result_.wall_ns) / 1e6;
    end.cpu_ms = static_cast<double>(result_.cpu_ns) / 1e6;
    end.peak_bytes = result_.peak_bytes;
  }

  void reap() {
    while (::waitpid(supervisor_, nullptr, 0) < 0 && errno == EINTR) continue;
    supervisor_ = -1;
  }

  const ProcessJob& job_;
  Pipe lifeline_, report_, output_, errors_;
  pid_t supervisor_ = -1;
  SupervisorReport result_;
  bool reported_ = false;
  bool report_ended_ = false;
};

}  // namespace

void CapturedOutput::append(std::string_view bytes) {
  bytes_ += bytes.size();
  const size_t head = std::min(bytes.size(), half_ - first_.size());
  first_ += bytes.substr(0, head);
  last_ += bytes.substr(head);
  if (last_.size() > 2 * half_) last_.erase(0, last_.size() - half_);
}

std::string CapturedOutput::text() const {
  return first_ + (last_.size() > half_ ? last_.substr(last_.size() - half_) : last_);
}

std::string CapturedOutput::tail() const {
  std::string end = last_.size() >= kTailBytes ? last_ : first_ + last_;
  const bool cut = end.size() > kTailBytes;
  if (cut) end.erase(0, end.size() - kTailBytes);
  while (!end.empty() && (end.back() == '\n' || end.back() == ' ')) end.pop_back();
  return (cut ? "…" : "") + one_line(end);
}

std::string ProcessEnd::failure(const ProcessJob& job) const {
  if (kind == Kind::kExited && code == 0) return "";
  std::string text = fmt::format("exit code {}", code);
  if (kind == Kind::kTimedOut) {
    text = fmt::format("no end within {:g} s", static_cast<double>(job.timeout.count()) / 1000);
  } else if (kind == Kind::kSignalled) {
    const char* name = ::sigabbrev_np(code);
    text = name != nullptr ? fmt::format("signal {} (SIG{})", code, name)
                           : fmt::format("signal {}", code);
  }
  const std::string said = errors.tail().empty() ? output.tail() : errors.tail();
  return said.empty() ? text : fmt::format("{}; it said: {}", text, said);
}

Result<ProcessEnd> run_process(const ProcessJob& job) {
  RECKON_CHECK(!job.argv.empty());
  Run run(job);
  TRY(run.start());
  return run.finish();
}

}  // namespace reckon::adapters
