#pragma once

// Loops for the widest vectors of the processor at hand, in a program that runs on any.

namespace cumulus {

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))

namespace detail {

template <class Body>
__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw"), flatten)) void run_by_avx512(const Body& body) {
  body();
}

inline bool has_avx512() {
  static const bool kHas = __builtin_cpu_supports("avx512f") != 0 &&
                           __builtin_cpu_supports("avx512dq") != 0 &&
                           __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512bw") != 0;
  return kHas;
}

}  // namespace detail

/// Calls `body`, compiled for AVX-512 too and taken so where the processor has it. All that it calls is
/// inlined. No product in it may be added to anything, unless it is exact: it could be fused there, and
/// rounded otherwise than elsewhere.
template <class Body>
void with_wide_vectors(const Body& body) {
  if (detail::has_avx512()) return detail::run_by_avx512(body);
  body();
}

#else

template <class Body>
void with_wide_vectors(const Body& body) {
  body();
}

#endif

}  // namespace cumulus
