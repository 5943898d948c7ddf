#include "kernels/cuda/blaslt.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <map>
#include <tuple>

namespace reckon::kernels::cuda {
namespace {

// The loader's own search (LD_LIBRARY_PATH, the loader's cache) first, then where the toolkit's and
// the distributions' packages put it.
constexpr const char* kLibraries[] = {
    "libcublasLt.so.13",
    "libcublasLt.so",
    "/usr/local/cuda/lib64/libcublasLt.so.13",
    "/usr/local/cuda/targets/x86_64-linux/lib/libcublasLt.so.13",
    "/usr/local/cuda/targets/sbsa-linux/lib/libcublasLt.so.13",
    "/usr/lib/x86_64-linux-gnu/libcublasLt.so.13",
    "/usr/lib/aarch64-linux-gnu/libcublasLt.so.13",
    "/opt/cuda/lib64/libcublasLt.so.13",
};

struct Library {
  std::string missing;  // why there is none; "" where all functions were found
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetStatusString) status_string = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
};

template <typename Function>
void find(void* file, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(file, name));
  if (function == nullptr && missing.empty()) {
    missing = std::string("cuBLASLt has no function ") + name;
  }
}

Library load() {
  Library library;
  void* file = nullptr;
  for (const char* name : kLibraries) {
    if (file == nullptr) file = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (file == nullptr) {
    library.missing = "libcublasLt.so.13 is not installed (LD_LIBRARY_PATH can name its folder)";
    return library;
  }
  std::string& missing = library.missing;
  find(file, "cublasLtCreate", library.create, missing);
  find(file, "cublasLtDestroy", library.destroy, missing);
  find(file, "cublasLtGetStatusString", library.status_string, missing);
  find(file, "cublasLtMatmul", library.matmul, missing);
  find(file, "cublasLtMatmulDescCreate", library.desc_create, missing);
  find(file, "cublasLtMatmulDescDestroy", library.desc_destroy, missing);
  find(file, "cublasLtMatmulDescSetAttribute", library.desc_set, missing);
  find(file, "cublasLtMatrixLayoutCreate", library.layout_create, missing);
  find(file, "cublasLtMatrixLayoutDestroy", library.layout_destroy, missing);
  find(file, "cublasLtMatmulPreferenceCreate", library.preference_create, missing);
  find(file, "cublasLtMatmulPreferenceDestroy", library.preference_destroy, missing);
  find(file, "cublasLtMatmulPreferenceSetAttribute", library.preference_set, missing);
  find(file, "cublasLtMatmulAlgoGetHeuristic", library.heuristic, missing);
  return library;  // the file stays loaded for the process's life
}

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

// A descriptor of the library and the function that frees it.
template <typename Handle, cublasStatus_t (*const Library::*kDestroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  ~Owned() {
    if (handle_ != nullptr) (library().*kDestroy)(handle_);
  }
  Owned(Owned&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Owned& operator=(Owned&&) = delete;
  Handle* out() { return &handle_; }
  [[nodiscard]] Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};
using Handle = Owned<cublasLtHandle_t, &Library::destroy>;
using Desc = Owned<cublasLtMatmulDesc_t, &Library::desc_destroy>;
using Layout = Owned<cublasLtMatrixLayout_t, &Library::layout_destroy>;
using Preference = Owned<cublasLtMatmulPreference_t, &Library::preference_destroy>;

// What a shape needs besides its pointers. The library counts in columns: x [rows, k] row by row is
// its B of k rows and `rows` columns, the weight its transposed A, out its D of n rows.
struct Plan {
  Desc desc;
  Layout weight, x, out;
  cublasLtMatmulAlgo_t algorithm;
};

// type, rows, n, k, three strides, alignment of out, workspace bytes
using Key = std::tuple<BlasLtType, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, uint32_t,
                       uint64_t>;

uint32_t alignment(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  for (uint32_t bytes = 256; bytes > 4; bytes /= 2) {
    if (address % bytes == 0) return bytes;
  }
  return 4;
}

cublasStatus_t make_plan(cublasLtHandle_t handle, const BlasLtMatmul& p, uint32_t out_alignment,
                         uint64_t workspace_bytes, Plan& plan) {
  const Library& lib = library();
  const cudaDataType_t type = p.type == BlasLtType::kF16 ? CUDA_R_16F : CUDA_R_16BF;
  const auto size = [](int64_t value) { return static_cast<uint64_t>(value); };
  const cublasOperation_t transposed = CUBLAS_OP_T;
  const uint32_t input_alignment = 16;
  Preference preference;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  const auto step = [&status](auto&& call) {
    if (status == CUBLAS_STATUS_SUCCESS) status = call();
  };
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t key, const auto& value) {
    step([&] { return lib.preference_set(preference.get(), key, &value, sizeof value); });
  };
  step([&] { return lib.desc_create(plan.desc.out(), CUBLAS_COMPUTE_32F, CUDA_R_32F); });
  step([&] {
    return lib.desc_set(plan.desc.get(), CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                        sizeof transposed);
  });
  step([&] {
    return lib.layout_create(plan.weight.out(), type, size(p.k), size(p.n), p.weight_stride);
  });
  step([&] { return lib.layout_create(plan.x.out(), type, size(p.k), size(p.rows), p.x_stride); });
  step([&] {
    return lib.layout_create(plan.out.out(), CUDA_R_32F, size(p.n), size(p.rows), p.out_stride);
  });
  step([&] { return lib.preference_create(preference.out()); });
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, input_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, input_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, out_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, out_alignment);
  int found = 0;
  cublasLtMatmulHeuristicResult_t result;
  step([&] {
    return lib.heuristic(handle, plan.desc.get(), plan.weight.get(), plan.x.get(), plan.out.get(),
                         plan.out.get(), preference.get(), 1, &result, &found);
  });
  step([&] { return found > 0 ? result.state : CUBLAS_STATUS_NOT_SUPPORTED; });
  if (status == CUBLAS_STATUS_SUCCESS) plan.algorithm = result.algo;
  return status;
}

}  // namespace

struct BlasLt::State {
  Handle handle;
  std::map<Key, Plan> plans;
  std::string error;
};

bool blaslt_available() {
  return library().missing.empty();
}

const std::string& blaslt_missing_reason() {
  return library().missing;
}

BlasLt::BlasLt(std::unique_ptr<State> state) : state_(std::move(state)) {}
BlasLt::~BlasLt() = default;

Result<std::unique_ptr<BlasLt>> BlasLt::create() {
  if (!blaslt_available()) return failed(blaslt_missing_reason());
  auto state = std::make_unique<State>();
  const cublasStatus_t status = library().create(state->handle.out());
  if (status != CUBLAS_STATUS_SUCCESS) {
    return failed(std::string("cublasLtCreate: ") + library().status_string(status));
  }
  return std::unique_ptr<BlasLt>(new BlasLt(std::move(state)));
}

const char* BlasLt::matmul(const BlasLtMatmul& p, void* workspace, uint64_t workspace_bytes,
                           void* stream) {
  const auto report = [this](const char* what, cublasStatus_t status) {
    state_->error = std::string(what) + ": " + library().status_string(status);
    return state_->error.c_str();
  };
  const Key key{p.type,       p.rows,           p.n,
                p.k,          p.x_stride,       p.weight_stride,
                p.out_stride, alignment(p.out), workspace_bytes};
  auto found = state_->plans.find(key);
  if (found == state_->plans.end()) {
    Plan plan;
    const cublasStatus_t status =
        make_plan(state_->handle.get(), p, alignment(p.out), workspace_bytes, plan);
    if (status != CUBLAS_STATUS_SUCCESS) return report("cuBLASLt has no algorithm", status);
    found = state_->plans.emplace(key, std::move(plan)).first;
  }
  const Plan& plan = found->second;
  const float one = 1, zero = 0;
  const cublasStatus_t status = library().matmul(
      state_->handle.get(), plan.desc.get(), &one, p.weight, plan.weight.get(), p.x, plan.x.get(),
      &zero, p.out, plan.out.get(), p.out, plan.out.get(), &plan.algorithm, workspace,
      workspace_bytes, static_cast<cudaStream_t>(stream));
  return status == CUBLAS_STATUS_SUCCESS ? nullptr : report("cublasLtMatmul", status);
}

}  // namespace reckon::kernels::cuda
