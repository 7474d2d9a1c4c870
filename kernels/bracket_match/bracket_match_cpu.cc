#include "kernels/bracket_match/bracket_match.h"
#include "kernels/bracket_match/check.h"
#include "kernels/bracket_match/cpu/matcher.h"
#include "kernels/core/without_cuda.h"

namespace cumulus {

template <class Index>
void match_brackets(CpuExecutor& executor, HostSpan<const std::uint8_t> text, const BracketTable& table,
                    HostSpan<const std::int64_t> segments, const BracketOutputs<Index, Space::kHost>& outputs,
                    BracketReport* report) {
  using namespace bracket_match;
  check_outputs(text.size(), outputs);
  Matcher<ByteSymbols, Index>(executor, ByteSymbols{table}, text, segments, outputs).run(report);
}

template <class Index>
void match_brackets(CpuExecutor& executor, HostSpan<const std::int32_t> tokens,
                    HostSpan<const std::int64_t> segments, const BracketOutputs<Index, Space::kHost>& outputs,
                    BracketReport* report) {
  using namespace bracket_match;
  check_outputs(tokens.size(), outputs);
  Matcher<TokenSymbols, Index>(executor, TokenSymbols{}, tokens, segments, outputs).run(report);
}

#if !CUMULUS_WITH_CUDA
#define CUMULUS_INSTANTIATE(Index)                                                                          \
  template <>                                                                                               \
  void CUMULUS_WITHOUT_CUDA(match_brackets, DeviceSpan<const std::uint8_t>, const BracketTable&,            \
                            DeviceSpan<const std::int64_t>, const BracketOutputs<Index, Space::kDevice>&,   \
                            BracketReport*);                                                                \
  template <>                                                                                               \
  void CUMULUS_WITHOUT_CUDA(match_brackets, DeviceSpan<const std::int32_t>, DeviceSpan<const std::int64_t>, \
                            const BracketOutputs<Index, Space::kDevice>&, BracketReport*);
CUMULUS_INSTANTIATE(std::int32_t)
CUMULUS_INSTANTIATE(std::int64_t)
#undef CUMULUS_INSTANTIATE
#endif

template void match_brackets(CpuExecutor&, HostSpan<const std::uint8_t>, const BracketTable&,
                             HostSpan<const std::int64_t>,
                             const BracketOutputs<std::int32_t, CpuExecutor::kSpace>&, BracketReport*);
template void match_brackets(CpuExecutor&, HostSpan<const std::int32_t>, HostSpan<const std::int64_t>,
                             const BracketOutputs<std::int32_t, CpuExecutor::kSpace>&, BracketReport*);
template void match_brackets(CpuExecutor&, HostSpan<const std::uint8_t>, const BracketTable&,
                             HostSpan<const std::int64_t>,
                             const BracketOutputs<std::int64_t, CpuExecutor::kSpace>&, BracketReport*);
template void match_brackets(CpuExecutor&, HostSpan<const std::int32_t>, HostSpan<const std::int64_t>,
                             const BracketOutputs<std::int64_t, CpuExecutor::kSpace>&, BracketReport*);

}  // namespace cumulus
