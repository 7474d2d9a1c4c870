#pragma once

#include "kernels/bracket_match/bracket_match.h"

namespace cumulus::bracket_match {

/// What a call gets beside its elements. The outputs have been checked.
template <class Index>
struct MatchJob {
  DeviceSpan<const std::int64_t> segments;
  const BracketOutputs<Index, Space::kDevice>& outputs;
  BracketReport* report;
};

// match_brackets on the device.
template <class Index>
void match(CudaExecutor& executor, DeviceSpan<const std::uint8_t> text, const BracketTable& table,
           const MatchJob<Index>& job);
template <class Index>
void match(CudaExecutor& executor, DeviceSpan<const std::int32_t> tokens, const MatchJob<Index>& job);

}  // namespace cumulus::bracket_match
