// Writes when each kernel of a program ran on the GPU: a library that the CUDA driver loads into
// any program at its first call.
//
//   CUDA_INJECTION64_PATH=build/cuda/libtimeline.so RECKON_TIMELINE=steps.csv
//     reckon bench -m synth:llama-8b --quant q4 --backend cuda -p 0 -n 32
//   tools/gpu_gaps.py steps.csv
//
// One line a kernel or copy, in the order of completion: start and end in ns of the GPU's clock,
// the graph that launched it (0: none), the number of that launch, the name. CUPTI records every
// node of a graph, which costs time of its own: compare the traced program's speed with the
// untraced one's.
#include <cupti.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr size_t kBufferBytes = size_t{8} << 20;
constexpr size_t kAlignment = 8;

FILE* file = nullptr;

void complain(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = "unknown";
  cuptiGetResultString(result, &text);
  std::fprintf(stderr, "timeline: %s: %s\n", what, text);
}

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *max_records = 0;  // as many as fit
}

void write_record(const CUpti_Activity* record) {
  if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
    std::fprintf(file, "%llu,%llu,%u,%u,%s\n", static_cast<unsigned long long>(kernel->start),
                 static_cast<unsigned long long>(kernel->end), kernel->graphId,
                 kernel->correlationId, kernel->name);
  } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto* copy = reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
    std::fprintf(file, "%llu,%llu,%u,%u,copy %llu bytes\n",
                 static_cast<unsigned long long>(copy->start),
                 static_cast<unsigned long long>(copy->end), copy->graphId, copy->correlationId,
                 static_cast<unsigned long long>(copy->bytes));
  }
}

void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
    write_record(record);
  }
  std::free(buffer);
}

void finish() {
  complain(cuptiActivityFlushAll(1), "writing the last records");
  std::fclose(file);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char* path = std::getenv("RECKON_TIMELINE");
  file = std::fopen(path == nullptr ? "timeline.csv" : path, "w");
  if (file == nullptr) {
    std::perror("timeline");
    return 0;
  }
  std::fputs("start_ns,end_ns,graph,launch,name\n", file);
  complain(cuptiActivityRegisterCallbacks(give_buffer, take_buffer), "registering the buffers");
  complain(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "recording kernels");
  complain(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY), "recording copies");
  std::atexit(finish);
  return 1;
}
