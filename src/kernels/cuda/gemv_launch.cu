// Host side of gemv.h: checks the arguments, decides the geometry and launches.
#include <algorithm>

#include "kernels/cuda/gemv_mma.cuh"
#include "kernels/cuda/gemv_simt.cuh"

namespace reckon::kernels::cuda {
namespace {

const void* mma_kernel(TileType type, int columns) {
  switch (type) {
    case TileType::kP4:
      return gemv_mma_p4(columns);
    case TileType::kP8:
      return gemv_mma_p8(columns);
    case TileType::kF16:
      return gemv_mma_f16(columns);
    case TileType::kBf16:
      return gemv_mma_bf16(columns);
    case TileType::kF32:
      break;
  }
  return nullptr;
}

bool aligned_16(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}

bool is_valid(const GemvParams& p) {
  const bool swiglu = p.form == GemvForm::kSwiglu;
  constexpr int64_t kMaxRows = 65535 * int64_t{kGemvSlabRows};  // of grid y
  if (p.x == nullptr || p.rows < 1 || p.rows > kMaxRows || p.k < 1 || p.k > INT32_MAX / 2 ||
      p.x_stride < p.k || p.weight_count < 1 || p.weight_count > kGemvMaxWeights) {
    return false;
  }
  if (swiglu && (p.weight_count != 2 || p.weights[0].n != p.weights[1].n)) return false;
  for (int i = 0; i < p.weight_count; ++i) {
    const GemvWeight& weight = p.weights[i];
    if (weight.tiles == nullptr || !aligned_16(weight.tiles) || weight.n < 1 ||
        weight.n > INT32_MAX / 8) {
      return false;
    }
    if (!(swiglu && i == 1) && (weight.out == nullptr || weight.out_stride < weight.n)) {
      return false;
    }
  }
  return true;
}

GemvKernelArgs kernel_args(const GemvParams& p) {
  GemvKernelArgs args = {};
  args.x = p.x;
  args.x_stride = p.x_stride;
  args.weight_count = p.weight_count;
  args.parts = p.form == GemvForm::kSwiglu ? 2 : 1;
  for (int i = 0; i < p.weight_count; ++i) {
    args.tiles[i] = static_cast<const uint8_t*>(p.weights[i].tiles);
    args.out[i] = p.weights[i].out;
    args.out_stride[i] = p.weights[i].out_stride;
    args.n[i] = static_cast<int>(p.weights[i].n);
    args.first_unit[i] = args.units;
    if (args.parts == 1 || i == 0) args.units += static_cast<int>(strips_of(p.weights[i].n));
  }
  args.rows = static_cast<int>(p.rows);
  args.k = static_cast<int>(p.k);
  args.k_tiles = static_cast<int>(tiles_of(p.k));
  args.x_aligned = aligned_16(p.x) && p.x_stride % 4 == 0;
  return args;
}

GemvLaunch invalid() {
  GemvLaunch launch;
  launch.error = cudaErrorInvalidValue;
  return launch;
}

GemvLaunch launch_kernel(const void* kernel, dim3 grid, unsigned threads, unsigned shared_bytes,
                         unsigned cluster, bool overlap, cudaStream_t stream,
                         GemvKernelArgs& args) {
  cudaLaunchAttribute attributes[2];
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  if (cluster > 1) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs].val.clusterDim.x = cluster;
    attributes[config.numAttrs].val.clusterDim.y = 1;
    attributes[config.numAttrs].val.clusterDim.z = 1;
    ++config.numAttrs;
  }
  if (overlap) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs].val.programmaticStreamSerializationAllowed = 1;
    ++config.numAttrs;
  }
  void* pointers[] = {&args};
  GemvLaunch launch;
  launch.error = cudaLaunchKernelExC(&config, kernel, pointers);
  launch.kernel = kernel;
  launch.grid[0] = grid.x, launch.grid[1] = grid.y, launch.grid[2] = grid.z;
  launch.block = threads;
  launch.shared_bytes = shared_bytes;
  launch.cluster = cluster;
  return launch;
}

bool overlaps(const GemvDevice& device, const GemvParams& params) {
  return params.order == GemvOrder::kOverlap && device.compute_capability >= 90;
}

// Fills device->resident_clusters. The instances take alike numbers of registers, and a grid that
// is a little large only means a second round.
cudaError_t count_resident(GemvDevice* device) {
  const void* kernel = mma_kernel(TileType::kP4, 1);
  for (int log = 0; log < 4; ++log) {
    for (int blocks = 1; blocks <= GemvDevice::kMaxBlocks; ++blocks) {
      int& count = device->resident_clusters[log][blocks - 1];
      const size_t bytes = static_cast<size_t>(block_share(*device, blocks));
      cudaError_t error = cudaSuccess;
      if (log == 0) {
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel, kGemvThreads, bytes);
        count *= device->multiprocessors;
      } else if (device->compute_capability >= 90) {
        cudaLaunchAttribute attribute;
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = 1u << log;
        attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3(static_cast<unsigned>(device->multiprocessors * 8) << log);
        config.blockDim = dim3(kGemvThreads);
        config.dynamicSmemBytes = bytes;
        config.attrs = &attribute;
        config.numAttrs = 1;
        error = cudaOccupancyMaxActiveClusters(&count, kernel, &config);
      }
      if (error != cudaSuccess) return error;
    }
  }
  return cudaSuccess;
}

}  // namespace

int gemv_prepare(GemvDevice* device) {
  int ordinal = 0, major = 0, minor = 0, block_bytes = 0, device_bytes = 0;
  cudaError_t error = cudaGetDevice(&ordinal);
  const auto read = [&](int* value, cudaDeviceAttr attribute) {
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(value, attribute, ordinal);
  };
  read(&device->multiprocessors, cudaDevAttrMultiProcessorCount);
  read(&major, cudaDevAttrComputeCapabilityMajor);
  read(&minor, cudaDevAttrComputeCapabilityMinor);
  read(&block_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin);
  read(&device_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  if (error != cudaSuccess) return error;
  // What the code at hand was built for counts, not only what the device could do: code for 8.0
  // that a newer device runs knows no clusters and no dependent launch.
  cudaFuncAttributes attributes = {};
  error = cudaFuncGetAttributes(&attributes, mma_kernel(TileType::kP4, 1));
  if (error != cudaSuccess) return error;
  device->compute_capability = std::min(major * 10 + minor, attributes.ptxVersion);
  device->block_shared_bytes = block_bytes;
  device->device_shared_bytes = device_bytes;
  for (const TileType type : {TileType::kP4, TileType::kP8, TileType::kF16, TileType::kBf16}) {
    for (const int columns : {1, 8, 16}) {
      const void* kernel = mma_kernel(type, columns);
      error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, block_bytes);
      if (error != cudaSuccess) return error;
      error = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                   cudaSharedmemCarveoutMaxShared);
      if (error != cudaSuccess) return error;
    }
  }
  return count_resident(device);
}

GemvLaunch gemv_mma(const GemvDevice& device, const GemvParams& params, CUstream_st* stream) {
  if (!is_valid(params) || params.type == TileType::kF32) return invalid();
  GemvKernelArgs args = kernel_args(params);
  const GemvTuning tuning = params.tuning != nullptr ? *params.tuning
                                                     : gemv_tuning(device, params.type, params.rows,
                                                                   params.k, args.units);
  const GemvGeometry geometry =
      gemv_geometry(device, params.type, params.rows, params.k, args.units, tuning);
  if (!geometry.fits) return invalid();
  args.slab_rows = geometry.slab_rows;
  args.cluster = geometry.tuning.cluster;
  args.slots = geometry.tuning.slots;
  args.early_slots = geometry.tuning.early_slots;
  args.stage_tiles = geometry.tuning.stage_tiles;
  args.stages = geometry.stages;
  args.shared = geometry.shared;
  const int slabs = (args.rows + args.slab_rows - 1) / args.slab_rows;
  if (slabs > 65535) return invalid();
  return launch_kernel(mma_kernel(params.type, columns_for(geometry.slab_rows)),
                       dim3(static_cast<unsigned>(geometry.blocks), static_cast<unsigned>(slabs)),
                       kGemvThreads, static_cast<unsigned>(geometry.shared.bytes),
                       static_cast<unsigned>(args.cluster), overlaps(device, params), stream, args);
}

GemvLaunch gemv_simt(const GemvDevice& device, const GemvParams& params, CUstream_st* stream) {
  if (!is_valid(params)) return invalid();
  GemvKernelArgs args = kernel_args(params);
  args.slab_rows = params.rows == 1 ? 1 : kSimtRows;
  args.cluster = 1;
  const int slabs = (args.rows + args.slab_rows - 1) / args.slab_rows;
  if (slabs > 65535) return invalid();
  return launch_kernel(gemv_simt_kernel_of(params.type, args.slab_rows),
                       dim3(static_cast<unsigned>(args.units), static_cast<unsigned>(slabs)),
                       kSimtThreads, 0, 1, overlaps(device, params), stream, args);
}

}  // namespace reckon::kernels::cuda
