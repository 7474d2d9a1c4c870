#include "kernels/bracket_match/bracket_match.h"
#include "kernels/bracket_match/check.h"
#include "kernels/bracket_match/match/match.h"

namespace cumulus {

template <class Index>
void match_brackets(CudaExecutor& executor, DeviceSpan<const std::uint8_t> text, const BracketTable& table,
                    DeviceSpan<const std::int64_t> segments,
                    const BracketOutputs<Index, Space::kDevice>& outputs, BracketReport* report) {
  bracket_match::check_outputs(text.size(), outputs);
  bracket_match::match(executor, text, table, bracket_match::MatchJob<Index>{segments, outputs, report});
}

template <class Index>
void match_brackets(CudaExecutor& executor, DeviceSpan<const std::int32_t> tokens,
                    DeviceSpan<const std::int64_t> segments,
                    const BracketOutputs<Index, Space::kDevice>& outputs, BracketReport* report) {
  bracket_match::check_outputs(tokens.size(), outputs);
  bracket_match::match(executor, tokens, bracket_match::MatchJob<Index>{segments, outputs, report});
}

template void match_brackets(CudaExecutor&, DeviceSpan<const std::uint8_t>, const BracketTable&,
                             DeviceSpan<const std::int64_t>,
                             const BracketOutputs<std::int32_t, CudaExecutor::kSpace>&, BracketReport*);
template void match_brackets(CudaExecutor&, DeviceSpan<const std::int32_t>, DeviceSpan<const std::int64_t>,
                             const BracketOutputs<std::int32_t, CudaExecutor::kSpace>&, BracketReport*);
template void match_brackets(CudaExecutor&, DeviceSpan<const std::uint8_t>, const BracketTable&,
                             DeviceSpan<const std::int64_t>,
                             const BracketOutputs<std::int64_t, CudaExecutor::kSpace>&, BracketReport*);
template void match_brackets(CudaExecutor&, DeviceSpan<const std::int32_t>, DeviceSpan<const std::int64_t>,
                             const BracketOutputs<std::int64_t, CudaExecutor::kSpace>&, BracketReport*);

}  // namespace cumulus
