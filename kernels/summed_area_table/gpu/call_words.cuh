#pragma once

#include <cstdint>

#include "kernels/core/cuda_executor.h"
#include "kernels/primitives/status_word.cuh"

namespace cumulus::summed_area_table {

/// The executor's status words, for values that the blocks of one call publish
/// with its tag.
template <class Value>
struct CallWords {
  using Bits = typename StatusWord<Value>::Bits;
  Bits* words;
  std::uint32_t tag;

  __device__ void publish(int index, const Value& value) const {
    StatusWord<Value>(tag, value).store(words + index);
  }
};

/// For a kernel that publishes with `tags` tags, the first of which is the
/// words'.
template <class Value>
CallWords<Value> take_call_words(CudaExecutor& executor, std::uint32_t tags = 1) {
  using Bits = typename StatusWord<Value>::Bits;
  if constexpr (StatusWord<Value>::kWide) {
    const CudaExecutor::WideStatusWords taken = executor.wide_status_words(tags);
    return {reinterpret_cast<Bits*>(taken.words.data()), taken.tag};
  } else {
    const CudaExecutor::StatusWords taken = executor.status_words(tags);
    return {taken.words.data(), taken.tag};
  }
}

}  // namespace cumulus::summed_area_table
