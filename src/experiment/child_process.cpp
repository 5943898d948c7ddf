#include "experiment/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/text.h"

namespace reckon::experiment {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kPollStep{100};
constexpr milliseconds kEndGrace{2000};  // between the end of the output and of the process
constexpr size_t kErrorTailBytes = 2048;

struct Ends {
  UniqueFd parent;
  UniqueFd child;
};

Error system_error(const char* what) {
  return failed(fmt::format("{}: {}", what, std::strerror(errno)));
}

// Descriptors 0 to 2 are overwritten in the child, so no end of a channel may be one of them.
Status lift(UniqueFd& fd) {
  if (fd.get() > 2) return {};
  const int lifted = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3);
  if (lifted < 0) return system_error("fcntl");
  fd.reset(lifted);
  return {};
}

Result<Ends> make_channel(int fds[2]) {
  Ends ends{UniqueFd(fds[0]), UniqueFd(fds[1])};
  TRY(lift(ends.parent));
  TRY(lift(ends.child));
  if (::fcntl(ends.parent.get(), F_SETFL, O_NONBLOCK) != 0) return system_error("fcntl");
  return ends;
}

// From the child to the parent.
Result<Ends> make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return system_error("pipe");
  return make_channel(fds);
}

// A socket, because writing to one whose reader died can be told not to raise a signal.
Result<Ends> make_socket() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    return system_error("socketpair");
  }
  return make_channel(fds);
}

// Runs in the forked child: only async-signal-safe calls.
[[noreturn]] void become(char* const* argv, pid_t parent, int input, int output, int errors,
                         int report) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(input, 0);
  ::dup2(output, 1);
  ::dup2(errors, 2);
  ::execvp(argv[0], argv);
  const int reason = errno;
  (void)!::write(report, &reason, sizeof reason);
  ::_exit(127);
}

// Reads what there is, up to a bound, so that a child that never stops cannot hold us. False at the
// end of the stream.
bool drain(const UniqueFd& fd, std::string& buffer) {
  char bytes[65536];
  const size_t enough = buffer.size() + 16 * sizeof bytes;
  while (buffer.size() < enough) {
    const ssize_t got = ::read(fd.get(), bytes, sizeof bytes);
    if (got > 0) {
      buffer.append(bytes, static_cast<size_t>(got));
    } else if (got == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
  return true;
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    return name != nullptr ? fmt::format("signal {} (SIG{})", WTERMSIG(status), name)
                           : fmt::format("signal {}", WTERMSIG(status));
  }
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace

ChildProcess::~ChildProcess() {
  kill();
}

Status ChildProcess::start(const std::vector<std::string>& command) {
  RECKON_CHECK(!command.empty() && pid_ < 0);
  TRY_ASSIGN(Ends input, make_socket());
  TRY_ASSIGN(Ends output, make_pipe());
  TRY_ASSIGN(Ends errors, make_pipe());
  TRY_ASSIGN(Ends report, make_pipe());
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t self = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) return system_error("fork");
  if (pid_ == 0) {
    become(argv.data(), self, input.child.get(), output.child.get(), errors.child.get(),
           report.child.get());
  }
  ::setpgid(pid_, pid_);  // both sides do it, whoever comes first
  input_ = std::move(input.parent);
  output_ = std::move(output.parent);
  errors_ = std::move(errors.parent);
  report.child.reset();
  // Ends when exec closes the child's end, or brings the reason why it failed.
  ::fcntl(report.parent.get(), F_SETFL, 0);
  int reason = 0;
  ssize_t got = 0;
  do {
    got = ::read(report.parent.get(), &reason, sizeof reason);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof reason) return {};
  kill();
  return failed(fmt::format("{} cannot be started: {}", command.front(), std::strerror(reason)));
}

ChildProcess::Exchange ChildProcess::exchange(const std::string& request, milliseconds timeout,
                                              size_t maximum_line_bytes) {
  const Deadline deadline = steady_clock::now() + timeout;
  std::string line = request + '\n';
  std::string_view unsent = line;
  bool ended = false;
  while (true) {
    const size_t end = output_buffer_.find('\n', searched_);
    if (end != std::string::npos) {
      std::string answer = output_buffer_.substr(0, end);
      output_buffer_.erase(0, end + 1);
      searched_ = 0;
      return {std::move(answer), ""};
    }
    searched_ = output_buffer_.size();
    if (output_buffer_.size() > maximum_line_bytes) {
      return {std::nullopt, fmt::format("a line of over {} bytes", maximum_line_bytes)};
    }
    if (ended) return {std::nullopt, describe_end()};
    const Pumped pumped = pump(unsent, deadline);
    if (pumped == Pumped::kTimedOut) {
      return {std::nullopt,
              fmt::format("no answer within {:g} s", static_cast<double>(timeout.count()) / 1000)};
    }
    ended = pumped == Pumped::kEnded;
  }
}

std::string ChildProcess::finish(milliseconds timeout) {
  const Deadline deadline = steady_clock::now() + timeout;
  input_.reset();
  std::string_view nothing;
  Pumped pumped = Pumped::kProgress;
  while (!wait_status_ && pumped == Pumped::kProgress) pumped = pump(nothing, deadline);
  if (pumped == Pumped::kTimedOut) {
    kill();
    return "it did not end when it was told to";
  }
  const std::string end = describe_end();
  return wait_status_ == 0 ? "" : end;
}

ChildProcess::Pumped ChildProcess::pump(std::string_view& unsent, Deadline deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
  if (left.count() <= 0) return Pumped::kTimedOut;
  pollfd fds[3] = {{output_.get(), POLLIN, 0},
                   {errors_.get(), POLLIN, 0},
                   {unsent.empty() ? -1 : input_.get(), POLLOUT, 0}};
  if (::poll(fds, 3, static_cast<int>(std::min(left, kPollStep).count())) < 0) {
    return Pumped::kProgress;  // interrupted
  }
  const bool ended = reap_if_ended();  // before reading, so that nothing it said is missed
  if (fds[2].revents != 0) send_some(unsent);
  if (output_.open() && !drain(output_, output_buffer_)) output_.reset();
  drain_errors();
  return ended || !output_.open() ? Pumped::kEnded : Pumped::kProgress;
}

void ChildProcess::send_some(std::string_view& unsent) {
  const ssize_t sent =
      ::send(input_.get(), unsent.data(), unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) {
    unsent.remove_prefix(static_cast<size_t>(sent));
  } else if (errno != EAGAIN && errno != EINTR) {
    unsent = {};  // it no longer listens: its end will tell why
  }
}

void ChildProcess::drain_errors() {
  if (errors_.open() && !drain(errors_, error_buffer_)) errors_.reset();
  if (error_buffer_.size() > kErrorTailBytes) {
    error_buffer_.erase(0, error_buffer_.size() - kErrorTailBytes);
  }
}

bool ChildProcess::reap_if_ended() {
  if (wait_status_) return true;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid != pid_) {
    return false;
  }
  ::kill(-pid_, SIGKILL);  // while the unreaped child keeps the group's number from reuse
  int status = 0;
  ::waitpid(pid_, &status, 0);
  wait_status_ = status;
  return true;
}

std::string ChildProcess::describe_end() {
  const Deadline deadline = steady_clock::now() + kEndGrace;
  while (!reap_if_ended() && steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  if (!wait_status_) {
    kill();
    return "its output ended, but it did not";
  }
  drain_errors();
  return describe_status(*wait_status_);
}

void ChildProcess::kill() {
  if (pid_ < 0 || wait_status_) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);  // should it not have reached its group yet
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  wait_status_ = status;
}

std::string ChildProcess::error_tail() const {
  std::string tail = one_line(error_buffer_);
  while (!tail.empty() && tail.back() == ' ') tail.pop_back();
  return tail;
}

}  // namespace reckon::experiment
