// What asking a ledger of 20,000 entries costs. The ledger is made up (synthetic_testing.h), in
// $RECKON_BENCH_LEDGER (kept, and used again) or a folder that is removed at the end.
//   scripts/build release ledger_bench && build/release/ledger_bench
//   RECKON_BENCH_LEDGER=FOLDER build/release/ledger_bench --benchmark_filter=none   (only makes it)
// What the commands take on it: bench/ledger_speed.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ledger/catalog.h"
#include "ledger/open.h"
#include "ledger/synthetic_testing.h"

namespace reckon::ledger {
namespace {

namespace fs = std::filesystem;

constexpr size_t kEntries = 20000;
constexpr size_t kBatch = 500;  // entries an append
constexpr uint64_t kSeed = 1;

std::string folder;

const Store& store() {
  static const std::unique_ptr<Store> opened = open_store(folder).value();
  return *opened;
}

void make_ledger() {
  if (!open_store(folder).value()->read().value().events.empty()) return;
  const auto target = open_store(folder).value();
  test::SyntheticLedger source(kSeed);
  for (size_t made = 0; made < kEntries; made += kBatch) {
    std::vector<Event> events;
    for (size_t i = 0; i < kBatch; ++i) {
      for (Event& event : source.next()) events.push_back(std::move(event));
    }
    RECKON_CHECK(target->append(events).ok());
  }
}

void read_all(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(open_catalog_without_index(store()).value());
}
BENCHMARK(read_all)->Unit(benchmark::kMillisecond)->Iterations(1);

void make_index(benchmark::State& state) {
  for (auto _ : state) {
    fs::remove_all(fs::path(folder) / ".reckon-index");
    benchmark::DoNotOptimize(open_catalog(store()).value());
  }
}
BENCHMARK(make_index)->Unit(benchmark::kMillisecond)->Iterations(1);

// As a command does it: the index is opened anew and held against the files.
void consult(benchmark::State& state) {
  test::SyntheticLedger source(kSeed + 1);
  for (auto _ : state) {
    const auto catalog = open_catalog(store()).value();
    Query query;
    query.scope = source.scope();
    benchmark::DoNotOptimize(catalog->consult(query).value());
  }
}
BENCHMARK(consult)->Unit(benchmark::kMillisecond);

void list(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(open_catalog(store()).value()->list().value());
}
BENCHMARK(list)->Unit(benchmark::kMillisecond);

void append_and_consult(benchmark::State& state) {
  test::SyntheticLedger source(kSeed + 2);
  const auto target = open_store(folder).value();
  for (auto _ : state) {
    std::vector<Event> events = source.next();
    for (Event& event : events) event.time = "2027-01-01T00:00:00Z";
    events[0] = make_first_event(EventType::kIdea, events[0].body, "bench", events[0].time).value();
    RECKON_CHECK(target->append({events.data(), 1}).ok());
    Query query;
    query.scope = source.scope();
    benchmark::DoNotOptimize(open_catalog(store()).value()->consult(query).value());
  }
}
BENCHMARK(append_and_consult)->Unit(benchmark::kMillisecond)->Iterations(30);

}  // namespace
}  // namespace reckon::ledger

int main(int argc, char** argv) {
  const char* kept = std::getenv("RECKON_BENCH_LEDGER");
  std::string made = (std::filesystem::temp_directory_path() / "reckon-ledger-XXXXXX").string();
  reckon::ledger::folder = kept != nullptr ? kept : mkdtemp(made.data());
  reckon::ledger::make_ledger();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  if (kept == nullptr) std::filesystem::remove_all(reckon::ledger::folder);
  return 0;
}
