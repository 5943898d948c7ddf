#include "cli/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "cli/command.h"
#include "formats/mapped_file.h"

namespace reckon::cli {
namespace {

volatile std::sig_atomic_t received_signal = 0;

void note_signal(int signal) {
  received_signal = signal;
}

void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

void write_error(const char* text) {
  static_cast<void>(!write(STDERR_FILENO, text, std::strlen(text)));
}

// Async-signal-safe. A signal that somebody sent has no address of a file's.
void report_lost_pages(int signal, siginfo_t* info, void* /*context*/) {
  const char* path = info->si_code > 0 ? mapped_file_at(info->si_addr) : nullptr;
  if (path == nullptr) {
    handle(signal, SIG_DFL, 0);
    static_cast<void>(raise(signal));
    return;
  }
  write_error("reckon: ");
  write_error(path);
  write_error(": the file was cut short or changed while it was in use\n");
  _exit(kExitFailed);
}

// The handler runs on whichever thread the system picks.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// Readable where `interrupted` was set since it was emptied last. Never closed: a handler may be
// under way on another thread.
std::atomic<int> wake_event = -1;

void note_interrupt(int signal) {
  if (interrupted.exchange(true)) {
    handle(signal, SIG_DFL, 0);
    static_cast<void>(raise(signal));
    return;
  }
  const int before = errno;
  const uint64_t one = 1;
  static_cast<void>(!write(wake_event, &one, sizeof one));
  errno = before;
}

void empty_wake_event() {
  uint64_t count = 0;
  static_cast<void>(!read(wake_event, &count, sizeof count));
}

}  // namespace

void prepare_signals() {
  struct sigaction action {};
  action.sa_sigaction = report_lost_pages;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
  handle(SIGXFSZ, SIG_IGN, 0);
}

StopSignals::StopSignals() {
  received_signal = 0;
  for (const int signal : {SIGINT, SIGTERM}) {
    handle(signal, note_signal, static_cast<int>(SA_RESETHAND) | SA_RESTART);
  }
}

StopSignals::~StopSignals() {
  for (const int signal : {SIGINT, SIGTERM}) handle(signal, SIG_DFL, 0);
}

int StopSignals::received() {
  return received_signal;
}

Interrupts::Interrupts() {
  if (wake_event < 0) wake_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  take();
  handle(SIGINT, note_interrupt, SA_RESTART);
}

Interrupts::~Interrupts() {
  handle(SIGINT, SIG_DFL, 0);
}

bool Interrupts::pending() {
  return interrupted;
}

bool Interrupts::take() {
  const bool came = interrupted.exchange(false);
  empty_wake_event();
  return came;
}

bool Interrupts::wait_readable(int fd) {
  while (!pending()) {
    std::array<pollfd, 2> wanted{{{fd, POLLIN, 0}, {wake_event, POLLIN, 0}}};
    if (poll(wanted.data(), wanted.size(), -1) < 0 && errno != EINTR) return true;
    if (wanted[1].revents != 0) {
      empty_wake_event();  // what set it may have been taken by now
    } else if (wanted[0].revents != 0) {
      return true;
    }
  }
  return false;
}

}  // namespace reckon::cli
