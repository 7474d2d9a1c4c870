#include "kernels/core/non_finite.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/core/parallel.h"
#include "kernels/core/vector_width.h"

namespace cumulus {
namespace {

using namespace non_finite;

constexpr std::int64_t kGrain = std::int64_t{1} << 16;  // elements

template <class T>
Bits<T> bits_at(const T* elements, std::int64_t i) {
  Bits<T> bits;
  std::memcpy(&bits, elements + i, sizeof(bits));
  return bits;
}

template <class V>
void keep_least(std::atomic<V>& least, V value) {
  for (V known = least; value < known && !least.compare_exchange_weak(known, value);) {
  }
}

template <class V>
void keep_most(std::atomic<V>& most, V value) {
  for (V known = most; value > known && !most.compare_exchange_weak(known, value);) {
  }
}

template <class T>
Bits<T> largest_finite(CpuExecutor& executor, HostSpan<const T> elements) {
  std::atomic<Bits<T>> largest = largest_half_bits<T>();
  parallel_ranges(executor, static_cast<std::int64_t>(elements.size()), kGrain,
                  [&](std::int64_t begin, std::int64_t end) {
                    Bits<T> most = 0;
                    for (std::int64_t i = begin; i < end; ++i) {
                      const Bits<T> bits = bits_at(elements.data(), i);
                      if (is_finite<T>(bits)) most = std::max(most, magnitude<T>(bits));
                    }
                    keep_most(largest, most);
                  });
  return largest;
}

}  // namespace

template <class T>
bool all_finite(const T* elements, std::int64_t count) {
  Bits<T> largest = 0;
  run_vectorised([&] {
    Bits<T> most = 0;  // no branch, so that a compiler takes vectors
    for (std::int64_t i = 0; i < count; ++i) most = std::max(most, magnitude<T>(bits_at(elements, i)));
    largest = most;
  });
  return largest < infinity_bits<T>();
}

template <class T>
void find_non_finite(CpuExecutor& executor, HostSpan<const T> elements, NonFinite& found) {
  const T* const data = elements.data();
  std::atomic<std::uint64_t> first = NonFinite::kNone;
  parallel_ranges(executor, static_cast<std::int64_t>(elements.size()), kGrain,
                  [&](std::int64_t begin, std::int64_t end) {
                    if (all_finite(data + begin, end - begin)) return;
                    while (is_finite<T>(bits_at(data, begin))) ++begin;
                    keep_least(first, NonFinite::word_of(begin, kind_of<T>(bits_at(data, begin))));
                  });
  found.word = first;
}

template <class T>
HostSpan<const T> clamp_non_finite(CpuExecutor& executor, HostSpan<const T> elements) {
  NonFinite found;
  find_non_finite(executor, elements, found);
  if (!found.found()) return elements;
  const Bits<T> largest = largest_finite(executor, elements);
  const HostSpan<T> copy = executor.scratch<T>(elements.size());
  parallel_ranges(executor, static_cast<std::int64_t>(elements.size()), kGrain,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      const Bits<T> bits = clamped<T>(bits_at(elements.data(), i), largest);
                      std::memcpy(copy.data() + i, &bits, sizeof(bits));
                    }
                  });
  return copy;
}

#define CUMULUS_INSTANTIATE(T)                                                   \
  template bool all_finite<T>(const T*, std::int64_t);                           \
  template void find_non_finite<T>(CpuExecutor&, HostSpan<const T>, NonFinite&); \
  template HostSpan<const T> clamp_non_finite<T>(CpuExecutor&, HostSpan<const T>);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
CUMULUS_INSTANTIATE(double)
#undef CUMULUS_INSTANTIATE

}  // namespace cumulus
