#include "kernels/cuda/executor.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/check.h"
#include "kernels/cuda/step_input.h"

namespace reckon::kernels::cuda {
namespace {

constexpr uint64_t kTokensAt = kArenaAlignment;  // behind the StepInput
static_assert(sizeof(StepInput) <= kTokensAt);

uint64_t picks_at(int64_t max_rows) {
  return arena_rounded(kTokensAt + static_cast<uint64_t>(max_rows) * sizeof(int32_t));
}

// Without room in a multiprocessor where the runtime does not say.
KernelResources resources_of(const void* kernel, dim3 block, uint32_t shared_bytes) {
  const auto threads = static_cast<int>(block.x * block.y * block.z);
  cudaFuncAttributes attributes{};
  int blocks = 0;
  int device = 0;
  int most = 0;
  const bool known =
      cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess &&
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes) ==
          cudaSuccess &&
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxThreadsPerMultiProcessor, device) == cudaSuccess;
  if (!known) return {};
  return {static_cast<uint32_t>(attributes.numRegs),
          static_cast<uint32_t>(attributes.localSizeBytes), static_cast<uint32_t>(blocks * threads),
          static_cast<uint32_t>(most)};
}

}  // namespace

void note_launch(KernelContext& context, const void* kernel, dim3 grid, dim3 block,
                 uint32_t shared_bytes) {
  if (context.trace == nullptr) return;
  const char* name = "";
  if (cudaFuncGetName(&name, kernel) != cudaSuccess) name = "unknown kernel";
  Launch* fresh = context.trace->note_launch(
      {kernel, name, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes});
  if (fresh != nullptr) fresh->resources = resources_of(kernel, block, shared_bytes);
}

uint64_t CudaExecutor::step_bytes(int64_t max_rows) {
  return picks_at(max_rows) + static_cast<uint64_t>(max_rows) * sizeof(Pick);
}

CudaExecutor::CudaExecutor(Planner& planner, Trace& trace, const ExecutorResources& resources)
    : planner_(planner), trace_(trace), resources_(resources) {}

CudaExecutor::~CudaExecutor() {
  for (const Stream* stream : {&stream_, &reading_}) {
    if (*stream != nullptr) static_cast<void>(cudaStreamSynchronize(stream->get()));
  }
}

Result<std::unique_ptr<Executor>> CudaExecutor::create(Planner& planner, Trace& trace,
                                                       const ExecutorResources& resources,
                                                       const GemvDevice& gemv) {
  std::unique_ptr<CudaExecutor> executor(new CudaExecutor(planner, trace, resources));
  TRY(executor->set_up(gemv));
  return std::unique_ptr<Executor>(std::move(executor));
}

Status CudaExecutor::set_up(const GemvDevice& gemv) {
  if (blaslt_available()) {
    TRY_ASSIGN(blaslt_, BlasLt::create());
  }
  TRY_ASSIGN(stream_, make_stream());
  TRY_ASSIGN(reading_, make_stream());
  TRY_ASSIGN(picked_, make_event());
  TRY_ASSIGN(picks_read_, make_event());
  TRY_ASSIGN(picks_, make_pinned(static_cast<uint64_t>(resources_.max_rows) * sizeof(Pick)));
  auto* device = static_cast<char*>(resources_.step_memory);
  queue_.stream = stream_.get();
  queue_.input = reinterpret_cast<const StepInput*>(device);
  queue_.tokens = reinterpret_cast<const int32_t*>(device + kTokensAt);
  queue_.matmul_library = blaslt_.get();
  queue_.gemv = &gemv;
  dispatcher_ = std::make_unique<Dispatcher>(
      planner_, DispatchResources{.threads = nullptr,
                                  .trace = &trace_,
                                  .scratch = resources_.scratch,
                                  .scratch_bytes = resources_.scratch_bytes,
                                  .queue = &queue_,
                                  .audit = resources_.audit});
  return {};
}

void CudaExecutor::note(const Access& access) const {
  if (resources_.audit != nullptr) resources_.audit->note(access);
}

// Puts input_ and the tokens where the pass reads them, behind everything queued before.
Status CudaExecutor::send_inputs(std::span<const int32_t> tokens, bool picked_token) {
  // What is sent is read by kernels through the queue, so that no op's arguments name it.
  note({resources_.step_memory, kTokensAt + tokens.size_bytes(), AccessKind::kReadWrite});
  RECKON_CHECK(!picked_token || picked_rows_ == 1);
  auto* device = static_cast<char*>(resources_.step_memory);
  sent_ = input_;
  return status_of(
      write_step_input(stream_.get(), input_, tokens, picked_token ? device_picks() : nullptr,
                       reinterpret_cast<StepInput*>(device),
                       reinterpret_cast<int32_t*>(device + kTokensAt)),
      "sending a pass's inputs");
}

Pick* CudaExecutor::device_picks() const {
  return reinterpret_cast<Pick*>(static_cast<char*>(resources_.step_memory) +
                                 picks_at(resources_.max_rows));
}

Status CudaExecutor::run(const Step& step, const Work& work) {
  RECKON_CHECK(static_cast<int64_t>(step.tokens.size()) <= resources_.max_rows);
  input_.first_position = step.first_position;
  TRY(send_inputs(step.tokens, step.picked_token));
  dispatcher_->set_phase(step.phase);
  if (!step.repeatable || planner_.switches().get("decode.graph") == "off") {
    return work(*dispatcher_);
  }
  TRY_ASSIGN(const Captured* graph, captured(step, work));
  TRY(status_of(cudaGraphLaunch(graph->graph.get(), stream_.get()), "launching a step's graph"));
  trace_.add(*graph->rows);
  return {};
}

Result<const CudaExecutor::Captured*> CudaExecutor::captured(const Step& step, const Work& work) {
  const std::pair key(step.phase, step.tokens.size());
  if (const auto known = graphs_.find(key); known != graphs_.end()) return &known->second;
  TRY_ASSIGN(Captured graph, capture(work));
  return &graphs_.emplace(key, std::move(graph)).first->second;
}

Result<CudaExecutor::Captured> CudaExecutor::capture(const Work& work) {
  TRY(status_of(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal),
                "capturing a step"));
  trace_.begin_capture();
  const Status worked = work(*dispatcher_);
  Captured captured;
  captured.rows = trace_.end_capture();
  cudaGraph_t raw = nullptr;
  const Status ended = status_of(cudaStreamEndCapture(stream_.get(), &raw), "capturing a step");
  const Graph graph(raw);
  TRY(worked);
  TRY(ended);
  cudaGraphExec_t exec = nullptr;
  TRY(status_of(cudaGraphInstantiate(&exec, graph.get(), 0), "instantiating a step's graph"));
  captured.graph.reset(exec);
  return captured;
}

Status CudaExecutor::start_sample(Activation logits, const Sampling& sampling) {
  RECKON_CHECK(logits.rows <= resources_.max_rows);
  input_.temperature = sampling.temperature;
  input_.uniform = sampling.uniform;
  if (input_ != sent_) TRY(send_inputs({}, false));
  picked_rows_ = static_cast<size_t>(logits.rows);
  dispatcher_->set_phase(Phase::kDecode);
  TRY(dispatcher_->sample(logits, sampling, {device_picks(), picked_rows_}));
  return read_picks();
}

// On a stream of its own: the next pass need not wait for the copy.
Status CudaExecutor::read_picks() {
  constexpr const char* kWhat = "reading the picked tokens";
  const size_t bytes = picked_rows_ * sizeof(Pick);
  TRY(status_of(cudaEventRecord(picked_.get(), stream_.get()), kWhat));
  TRY(status_of(cudaStreamWaitEvent(reading_.get(), picked_.get()), kWhat));
  TRY(status_of(
      cudaMemcpyAsync(picks_.get(), device_picks(), bytes, cudaMemcpyDeviceToHost, reading_.get()),
      kWhat));
  return status_of(cudaEventRecord(picks_read_.get(), reading_.get()), kWhat);
}

Result<std::vector<Pick>> CudaExecutor::take_picks() {
  TRY(status_of(cudaEventSynchronize(picks_read_.get()), "picking tokens"));
  const size_t bytes = picked_rows_ * sizeof(Pick);
  note({device_picks(), bytes, AccessKind::kRead});
  std::vector<Pick> picks(picked_rows_);
  std::memcpy(picks.data(), picks_.get(), bytes);
  return picks;
}

Status CudaExecutor::wait() {
  return status_of(cudaStreamSynchronize(stream_.get()), "running a pass");
}

Result<Activation> CudaExecutor::host_view(Activation values) {
  const uint64_t bytes = static_cast<uint64_t>(values.rows * values.columns) * sizeof(float);
  if (bytes > view_bytes_) {
    view_.reset();
    view_bytes_ = 0;
    TRY_ASSIGN(view_, make_pinned(bytes));
    view_bytes_ = bytes;
  }
  TRY(status_of(
      cudaMemcpyAsync(view_.get(), values.data, bytes, cudaMemcpyDeviceToHost, stream_.get()),
      "reading values from the device"));
  note(host_read_of(values));
  TRY(wait());
  return Activation{static_cast<float*>(view_.get()), values.rows, values.columns};
}

}  // namespace reckon::kernels::cuda
