// A Runner that does what its switches say, for tests. The switch "arm" holds a list such as
// "variant=v2,speed=1.05,fault=crash@2":
//   variant=NAME    the matmul kernel of the decode phase (v1)
//   speed=X         the metric is 100 X (1)
//   jitter=X        … and moves by up to ±X of itself
//   other=X         prefill_tok_per_s is 1000 X (1), with the same jitter
//   side=NAME       the attention kernel (plain)
//   possible=NAME   the plan lists another matmul kernel as possible; takes=1: it runs, too
//   lie=extra|missing     what is observed contradicts the plan
//   diverge=N       token N differs; unstable=1: tokens differ from call to call
//   kl=X            what the arm predicts is that far from the base arm's (0), its perplexity 10+X;
//                   faultq=KIND: comparing it ends so
//   lacks=NAME      a kernel that the device lacks: the arm cannot be planned
//   bytes=N         planned bytes (1000)
//   registers=N     what the kernels took of a device: the matmul that many, attention 32 (not
//   said) sleep=MS        a measurement takes that long fault=KIND@N    the N-th measurement of
//   this arm in a process (from 1) ends as crash, hang,
//                   garbage, exit, error, usage, refuse, or zero (a metric of 0); late is a crash
//                   where the environment has RECKON_TEST_LATE
// The model is "tiny", followed by ";source=HASH" (kernel sources), ";units=N" (device),
// ";kernel=VERSION" (of the system) and ";dirty".
#pragma once

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/text.h"
#include "experiment/runner.h"

namespace reckon::experiment {

class FakeRunner : public Runner {
 public:
  Result<Subject> describe(const Workload& workload, const Arm& base) override {
    if (workload.model.rfind("tiny", 0) != 0) {
      return usage_error(fmt::format("no model is called '{}'", workload.model));
    }
    kernel_ = option(workload.model, ';', "kernel", "1.0");
    Subject subject;
    subject.device = {{"vendor", "TestVendor"},
                      {"isa", "avx2"},
                      {"units", option(workload.model, ';', "units", "8")},
                      {"memory_bytes", "16000000000"}};
    subject.device_name = "Test device";
    subject.backend = "cpu";
    subject.model_family = "llama";
    subject.model_shape_hash = "shape0";
    subject.model_hash = "model0";
    subject.weight_format = "q4_0";
    const auto chunk = base.switches.find("prefill.chunk");
    subject.chunk = chunk == base.switches.end() ? 512 : std::stoll(chunk->second);
    subject.threads = 2;
    subject.prompt_tokens = workload.prompt_tokens > 0 ? workload.prompt_tokens : 5;
    subject.prompt_hash = hash_hex(workload.prompt);
    return subject;
  }

  Result<Prediction> predict(const Workload& workload, const Arm& arm) override {
    if (const std::string kernel = get(arm, "lacks", ""); !kernel.empty()) {
      return unsupported(fmt::format("arm={}: there is no such variant here", kernel));
    }
    Prediction prediction;
    for (const DispatchRow& row : base_rows(workload, arm)) {
      prediction.rows.push_back({row, "the rule of " + row.op, true});
    }
    const std::string possible = get(arm, "possible", "");
    if (!possible.empty()) {
      prediction.rows.push_back({matmul_row(workload, possible), "under a gate", false});
    }
    prediction.planned_bytes = std::stoull(get(arm, "bytes", "1000"));
    prediction.budget_bytes = 10'000'000;
    prediction.budget_source = "test";
    if (arm.memory_limit_bytes) {
      prediction.budget_bytes = std::min(prediction.budget_bytes, *arm.memory_limit_bytes);
    }
    prediction.fits = prediction.planned_bytes <= prediction.budget_bytes;
    if (!prediction.fits) prediction.refusal = "scratch is too large";
    prediction.terms = {{"scratch", "matmul", prediction.planned_bytes - 100},
                        {"state", "cache", 100}};
    return prediction;
  }

  Result<Measurement> measure(const Workload& workload, const Arm& arm) override {
    const int call = ++calls_[arm.name];
    kernel_ = option(workload.model, ';', "kernel", "1.0");
    TRY(misbehave(get(arm, "fault", ""), call));
    std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(get(arm, "sleep", "0"))));
    Measurement measurement;
    const double value = 100 * std::stod(get(arm, "speed", "1")) * (1 + jitter(arm));
    const bool zero = get(arm, "fault", "") == fmt::format("zero@{}", call);
    measurement.metrics = {
        {"decode_tok_per_s", zero ? 0.0 : value},
        {"ms_per_token", 1000 / value},
        {"prefill_tok_per_s", 1000 * std::stod(get(arm, "other", "1")) * (1 + jitter(arm))}};
    for (int64_t i = 0; i < workload.generate_tokens; ++i) {
      measurement.tokens.push_back(static_cast<int32_t>(i * 7 % 100));
      measurement.margins.push_back(0.5f + static_cast<float>(i));
    }
    const auto diverge = static_cast<size_t>(std::stoul(get(arm, "diverge", "9999")));
    if (diverge < measurement.tokens.size()) measurement.tokens[diverge] += 1;
    if (get(arm, "unstable", "") == "1" && !measurement.tokens.empty()) {
      measurement.tokens.back() += call;
    }
    measurement.observed = base_rows(workload, arm);
    if (get(arm, "takes", "") == "1") {
      measurement.observed.push_back(matmul_row(workload, get(arm, "possible", "")));
    }
    const std::string lie = get(arm, "lie", "");
    if (lie == "extra") measurement.observed.push_back(matmul_row(workload, "phantom"));
    if (lie == "missing") measurement.observed.pop_back();
    std::sort(measurement.observed.begin(), measurement.observed.end());
    measurement.peak_bytes = std::stoull(get(arm, "bytes", "1000"));
    if (const std::string registers = get(arm, "registers", ""); !registers.empty()) {
      measurement.kernel_use = {{"decode matmul", registers + " registers"},
                                {"decode attention", "32 registers"}};
    }
    dirty_ = workload.model.find(";dirty") != std::string::npos;
    return measurement;
  }

  Result<std::vector<EvidenceRow>> evidence(const Workload& /*workload*/, const Arm& arm,
                                            double value) override {
    return std::vector<EvidenceRow>{{"scratch", get(arm, "bytes", "1000") + " B"},
                                    {"share of the bound", fmt::format("{:.0f}%", value / 2)}};
  }

  bool compares_quality() const override { return true; }
  Result<Quality> compare_quality(const Workload& workload, const Arm& /*base*/, const Arm& arm,
                                  std::span<const int32_t> generated) override {
    TRY(misbehave(get(arm, "faultq", "") + "@1", 1));
    const double kl = std::stod(get(arm, "kl", "0"));
    Quality quality;
    quality.tokens = 5 + static_cast<int64_t>(generated.size());
    quality.mean_kl = kl;
    quality.largest_kl = 2 * kl;
    quality.top1_equal = quality.tokens - (kl > 0 ? 1 : 0);
    if (!workload.prompt.empty()) {
      quality.base_perplexity = 10;
      quality.arm_perplexity = 10 + kl;
    }
    return quality;
  }

  nlohmann::json environment() override {
    return {{"kernel", "Test " + kernel_},   {"compiler", "test"},
            {"commit", "0123abc"},           {"dirty", dirty_},
            {"readings", {{"load", "0.5"}}}, {"facts", {{"temperature_c", 40.0}}},
            {"unknown_to_the_ledger", 7}};
  }

  std::vector<MetricInfo> metrics() const override {
    return {{"decode_tok_per_s", "tok/s", true, "decode"},
            {"ms_per_token", "ms", false, "decode"},
            {"prefill_tok_per_s", "tok/s", true, "prefill"}};
  }

  Status check_switch(const std::string& key, const std::string& value) override {
    if (value == "forbidden") return usage_error(fmt::format("'{}' cannot be forbidden", key));
    if (key == "arm" || key == "prefill.chunk" || key == "threads") return {};
    return usage_error(fmt::format("unknown switch '{}'; did you mean 'arm'?", key));
  }

  std::string default_value(const std::string&) override { return "variant=v1"; }

 private:
  // The value of "KEY=…" in a separated list.
  static std::string option(const std::string& list, char separator, const std::string& key,
                            const std::string& fallback) {
    for (const std::string& part : split(list, separator)) {
      if (part.rfind(key + "=", 0) == 0) return part.substr(key.size() + 1);
    }
    return fallback;
  }

  static std::string get(const Arm& arm, const std::string& key, const std::string& fallback) {
    const auto found = arm.switches.find("arm");
    return found == arm.switches.end() ? fallback : option(found->second, ',', key, fallback);
  }

  static DispatchRow matmul_row(const Workload& workload, const std::string& variant) {
    return {"decode", "matmul", "1x64x64 q4_0",
            variant,  "",       option(workload.model, ';', "source", "s1")};
  }

  static std::vector<DispatchRow> base_rows(const Workload& workload, const Arm& arm) {
    return {matmul_row(workload, get(arm, "variant", "v1")),
            {"decode", "attention", "1x64", get(arm, "side", "plain"), "", "a1"},
            {"prefill", "matmul", "5x64x64 q4_0", "v1", "", "s1"}};
  }

  double jitter(const Arm& arm) {
    const double size = std::stod(get(arm, "jitter", "0"));
    const uint64_t bits = hash64(fmt::format("{} {}", ::getpid(), ++draws_));
    return size * (2 * static_cast<double>(bits >> 11) / 9007199254740992.0 - 1);
  }

  static Status misbehave(const std::string& fault, int call) {
    const std::vector<std::string> parts = split(fault, '@');
    if (parts.size() != 2 || std::stoi(parts[1]) != call) return {};
    const bool late = parts[0] == "late" && std::getenv("RECKON_TEST_LATE") != nullptr;
    if (parts[0] == "crash" || late) {
      (void)!::write(2, "about to crash\n", 15);
      ::signal(SIGSEGV, SIG_DFL);
      ::raise(SIGSEGV);
    }
    if (parts[0] == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
    if (parts[0] == "garbage") (void)!::write(1, "no JSON at all\n", 15);
    if (parts[0] == "exit") ::_exit(3);
    if (parts[0] == "error") return failed("the device was unplugged");
    if (parts[0] == "usage") return usage_error("the model lost its tokenizer");
    if (parts[0] == "refuse") return refused("needs 2 GiB, and 1 GiB is free");
    return {};
  }

  std::map<std::string, int> calls_;
  uint64_t draws_ = 0;
  bool dirty_ = false;
  std::string kernel_ = "1.0";
};

inline Result<std::unique_ptr<Runner>> open_fake_runner(const std::string& /*name*/) {
  return std::make_unique<FakeRunner>();
}

}  // namespace reckon::experiment
