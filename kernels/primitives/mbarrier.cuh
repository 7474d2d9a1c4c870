#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

namespace cumulus {

/// Waits until the phase of an mbarrier that has this parity has ended. `address` is the mbarrier's in shared
/// memory. Compute capability 9.0 and later.
__device__ inline void wait_for_phase_parity(std::uint32_t address, std::uint32_t parity) {
  std::uint32_t over = 0;
  while (over == 0) {
    asm volatile(
        "{ .reg .pred over; mbarrier.try_wait.parity.shared.b64 over, [%1], %2; selp.u32 %0, 1, 0, over; }"
        : "=r"(over)
        : "r"(address), "r"(parity)
        : "memory");
  }
}

/// An mbarrier in shared memory: threads arrive, others wait for the end of a phase; one phase follows the
/// other. A wait for phase n must have returned before phase n + 1 ends: what is tested is a phase's parity.
class Mbarrier {
 public:
  /// A phase ends with so many arrivals.
  __device__ void init(int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
  }
  __device__ void arrive() {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(address()) : "memory");
  }
  /// An arrival that happens once the asynchronous copies that the thread has begun (async_copy.cuh) are
  /// there.
  __device__ void arrive_when_copied() {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(address()) : "memory");
  }
  /// An arrival after which the phase ends only when so many bytes have come in asynchronously, too.
  __device__ void arrive_expect_bytes(int bytes) {
    asm volatile(
        "{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(address()),
        "r"(bytes)
        : "memory");
  }
  /// Puts four bytes where another block of the cluster has what this one has at `place`, and counts them at
  /// that block's own mbarrier. When the call returns they are on their way, not there.
  template <class T>
  __device__ void send(std::uint32_t block, const T& place, T value) const {
    static_assert(sizeof(T) == sizeof(std::uint32_t));
    std::uint32_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
                     address_at(block, &place)),
                 "r"(bits), "r"(address_at(block, &state_))
                 : "memory");
  }
  /// For the end of phase number `phase`.
  __device__ void wait(std::uint32_t phase) { wait_for_phase_parity(address(), phase % 2); }

 private:
  __device__ std::uint32_t address() const {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(&state_));
  }

  /// Of what another block of the cluster has where this one has `mine`.
  static __device__ std::uint32_t address_at(std::uint32_t block, const void* mine) {
    std::uint32_t there = 0;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(mine))), "r"(block));
    return there;
  }

  std::uint64_t state_;
};

}  // namespace cumulus
