#include "cli/signals.h"

#include <csignal>
#include <initializer_list>

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

volatile std::sig_atomic_t interrupted = 0;

void note_interrupt(int signal) {
  if (interrupted != 0) {
    handle(signal, SIG_DFL, 0);
    static_cast<void>(raise(signal));
  }
  interrupted = 1;
}

}  // namespace

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
