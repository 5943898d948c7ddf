#include "adapters/command_supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace reckon::adapters {
namespace {

constexpr int kSweeps = 2000;  // a millisecond apart, until nothing of the program is left

int64_t now_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

int64_t nanoseconds(const timeval& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_usec} * 1000;
}

[[noreturn]] void become(char* const* argv, char* const* environment, const SupervisorFds& fds,
                         pid_t parent, int start_report) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD}) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, 0);
  ::dup2(fds.output, 1);
  ::dup2(fds.errors, 2);
  ::execvpe(argv[0], argv, environment);
  const int reason = errno;
  (void)!::write(start_report, &reason, sizeof reason);
  ::_exit(127);
}

// Kills the direct children of this process, which everything becomes whose parent has died.
void kill_children() {
  char path[] = "/proc/thread-self/children";
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  char text[4096];
  pid_t pid = 0;
  for (ssize_t got = 0; (got = ::read(file, text, sizeof text)) > 0;) {
    for (ssize_t i = 0; i < got; ++i) {
      if (text[i] >= '0' && text[i] <= '9') {
        pid = pid * 10 + (text[i] - '0');
      } else if (pid > 0) {
        ::kill(pid, SIGKILL);
        ::kill(-pid, SIGKILL);  // the group that it may lead
        pid = 0;
      }
    }
  }
  ::close(file);
}

void sweep() {
  for (int i = 0; i < kSweeps; ++i) {
    kill_children();
    pid_t reaped = 0;
    while ((reaped = ::waitpid(-1, nullptr, WNOHANG)) > 0) continue;
    if (reaped < 0 && errno == ECHILD) return;
    const timespec pause{0, 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

// Until the program has ended, or somebody wants it to.
void wait_for_end(pid_t program, int lifeline, int signals) {
  while (true) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(program), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == program) {
      return;
    }
    pollfd fds[2] = {{lifeline, POLLIN, 0}, {signals, POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0) continue;
    if (fds[0].revents != 0) return;
    signalfd_siginfo ignored;
    (void)!::read(signals, &ignored, sizeof ignored);
  }
}

int child_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

}  // namespace

void supervise(char* const* argv, char* const* environment, const SupervisorFds& fds) {
  ::setsid();  // out of the group that dies with the round's process
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  SupervisorReport report;
  const int signals = child_signals();
  int start[2];
  if (signals < 0 || ::pipe2(start, O_CLOEXEC) != 0) ::_exit(1);
  const pid_t self = ::getpid();
  const int64_t started = now_ns();
  const pid_t program = ::fork();
  if (program == 0) become(argv, environment, fds, self, start[1]);
  ::close(fds.output);
  ::close(fds.errors);
  ::close(start[1]);
  if (program < 0) {
    report.start_error = errno;
  } else {
    wait_for_end(program, fds.lifeline, signals);
    report.wall_ns = now_ns() - started;
    ::kill(-program, SIGKILL);  // while the unreaped program keeps the group's number from reuse
    ::kill(program, SIGKILL);   // should it not have reached its group yet
    rusage usage{};
    while (::wait4(program, &report.wait_status, 0, &usage) < 0 && errno == EINTR) continue;
    report.cpu_ns = nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
    report.peak_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
    sweep();
    int reason = 0;
    if (::read(start[0], &reason, sizeof reason) == sizeof reason) report.start_error = reason;
  }
  (void)!::write(fds.report, &report, sizeof report);
  ::_exit(0);
}

}  // namespace reckon::adapters
