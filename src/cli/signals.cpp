#include "cli/signals.h"

#include <unistd.h>

#include <csignal>
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

volatile std::sig_atomic_t interrupted = 0;

void note_interrupt(int signal) {
  if (interrupted != 0) {
    handle(signal, SIG_DFL, 0);
    static_cast<void>(raise(signal));
  }
  interrupted = 1;
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
  interrupted = 0;
  handle(SIGINT, note_interrupt, 0);
}

Interrupts::~Interrupts() {
  handle(SIGINT, SIG_DFL, 0);
}

bool Interrupts::pending() {
  return interrupted != 0;
}

bool Interrupts::take() {
  const bool came = interrupted != 0;
  interrupted = 0;
  return came;
}

}  // namespace reckon::cli
