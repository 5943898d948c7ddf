// Thin wrappers of the instructions that the gemv kernels are built from: shared-memory barriers,
// asynchronous copies, clusters and programmatic dependent launch. PTX ISA 8.x, sections of the
// same names. Before compute capability 9.0 a copy is cp.async by all lanes, a cluster is one block
// and dependent launch is nothing, with the same protocol.
#pragma once

#include <cstdint>

namespace reckon::kernels::cuda {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
inline constexpr bool kHopper = true;
#else
inline constexpr bool kHopper = false;
#endif

// Arrivals that complete a stage's barrier: the issuing lane's (plus its bytes), or every lane's.
inline constexpr uint32_t kStageArrivals = kHopper ? 1 : 32;

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes inits visible to the copy engine and to the cluster.
__device__ __forceinline__ void barrier_init_fence() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

__device__ __forceinline__ bool barrier_poll(uint32_t barrier, uint32_t parity) {
  uint32_t done;
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
#else
  // test_wait.parity came with compute capability 9.0 tools but runs on 8.0.
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
#endif
  return done != 0;
}

__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
  while (!barrier_poll(barrier, parity)) {
  }
}

__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile(
      "{\n.reg .b64 state;\n"
      "mbarrier.arrive.shared::cta.b64 state, [%0];\n}" ::"r"(barrier)
      : "memory");
}

__device__ __forceinline__ void store_shared_16(uint32_t address, float4 v) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");
}

// `address` of this block's shared memory, as seen in block `rank` of the cluster.
__device__ __forceinline__ uint32_t cluster_address(uint32_t address, uint32_t rank) {
#if __CUDA_ARCH__ >= 900
  uint32_t mapped;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
#else
  return address;
#endif
}

// One arrival that also announces bytes that cluster_store() or a copy will bring.
__device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
#endif
}

// Stores into another block's shared memory and reports the bytes to a barrier there. An ordinary
// remote store with a release at cluster scope compiles to a membar.gpu and an L1 invalidation a
// strip, which cost 10% at 34816x5120.
__device__ __forceinline__ void cluster_store(uint32_t mapped_address, float4 v,
                                              uint32_t mapped_barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(mapped_address),
      "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(mapped_barrier)
      : "memory");
#endif
}

// Says that what was read here may be overwritten from there.
__device__ __forceinline__ void cluster_barrier_arrive(uint32_t mapped_barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(mapped_barrier) : "memory");
#endif
}

__device__ __forceinline__ uint32_t cluster_rank() {
#if __CUDA_ARCH__ >= 900
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
#else
  return 0;
#endif
}

// A barrier of all threads of all blocks of the cluster (nothing where that is one block), in two
// halves. Orders barrier inits that barrier_init_fence() follows, not other memory: a release at
// cluster scope would be a membar.gpu.
__device__ __forceinline__ void cluster_arrive(uint32_t cluster) {
#if __CUDA_ARCH__ >= 900
  if (cluster > 1) asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void cluster_wait(uint32_t cluster) {
#if __CUDA_ARCH__ >= 900
  if (cluster > 1) asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

// The first `threads` threads of the block, a multiple of 32.
__device__ __forceinline__ void partial_sync(uint32_t threads) {
  asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
}

// Weights are read once: do not let them push activations and caches out of L2.
__device__ __forceinline__ uint64_t evict_first_policy() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// Called by a whole warp: each of lanes 0 ... lanes - 1 starts copying kCopies times `bytes` (a
// multiple of 16, 0 allowed), `step` bytes apart in shared memory; its `barrier` completes a phase
// when all have landed.
template <int kCopies>
__device__ __forceinline__ void copy_stages(uint32_t to, uint32_t step,
                                            const uint8_t* const (&from)[kCopies],
                                            const uint32_t (&bytes)[kCopies], uint32_t barrier,
                                            uint64_t policy, uint32_t lane, uint32_t lanes) {
#if __CUDA_ARCH__ >= 900
  if (lane < lanes) {
    uint32_t all = 0;
#pragma unroll
    for (int c = 0; c < kCopies; ++c) all += bytes[c];
    barrier_expect(barrier, all);
#pragma unroll
    for (int c = 0; c < kCopies; ++c) {
      if (bytes[c] == 0) continue;
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
          " [%0], [%1], %2, [%3], %4;" ::"r"(to + c * step),
          "l"(from[c]), "r"(bytes[c]), "r"(barrier), "l"(policy)
          : "memory");
    }
  }
#else
  for (uint32_t i = 0; i < lanes; ++i) {
    const uint32_t to_i = __shfl_sync(0xffffffffu, to, i);
    const uint32_t barrier_i = __shfl_sync(0xffffffffu, barrier, i);
#pragma unroll
    for (int c = 0; c < kCopies; ++c) {
      const uint32_t bytes_i = __shfl_sync(0xffffffffu, bytes[c], i);
      const uint64_t from_i = __shfl_sync(0xffffffffu, reinterpret_cast<uint64_t>(from[c]), i);
      for (uint32_t at = lane * 16; at < bytes_i; at += 512) {
        asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(
                         to_i + c * step + at),
                     "l"(from_i + at), "l"(policy)
                     : "memory");
      }
    }
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier_i)
                 : "memory");
  }
#endif
}

// Programmatic dependent launch: what comes before the wait may overlap the kernel before this one.
__device__ __forceinline__ void wait_for_inputs() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void let_dependents_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ __forceinline__ void store_shared_16(uint32_t address, const uint32_t (&v)[4]) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v[0]), "r"(v[1]),
               "r"(v[2]), "r"(v[3])
               : "memory");
}
__device__ __forceinline__ void store_shared_8(uint32_t address, uint2 v) {
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(address), "r"(v.x), "r"(v.y) : "memory");
}
__device__ __forceinline__ uint4 load_shared_16(uint32_t address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
__device__ __forceinline__ uint2 load_shared_8(uint32_t address) {
  uint2 v;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(address) : "memory");
  return v;
}
__device__ __forceinline__ uint32_t load_shared_4(uint32_t address) {
  uint32_t v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
  return v;
}

// 16 bytes of device memory that are read once.
__device__ __forceinline__ uint4 stream_16(const uint8_t* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

}  // namespace reckon::kernels::cuda
