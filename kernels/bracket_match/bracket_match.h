#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/bracket_match/method.h"
#include "kernels/bracket_match/table.h"
#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"
#include "kernels/core/views.h"

namespace cumulus {

// Bracket matching: what a stack would do, in parallel. The monoid is the one of R. Levien, "The stack
// monoid revisited" (2021), which is bracket matching in the bicyclic semigroup: a part of the text pops
// some brackets and then pushes some.
//
// A stack runs over the elements: an open bracket is pushed, a close bracket pops. A close pairs with the
// open that it pops, provided that both are of one kind; nesting is by shape alone, so that a close of the
// wrong kind still pops, and then neither has a partner. A close that finds the stack empty pops nothing.
// An open that is never popped has no partner. Where several documents stand in one array, the stack is
// empty at the beginning of each; numbers of elements count through all of them.

/// Where the results go; an empty span is not requested. `partner`, `parent`, `depth` and `top` have one
/// element for each of the input, numbers of elements begin at 0, and -1 says that there is none.
template <class Index, Space S>
struct BracketOutputs {
  Span<Index, S> partner;  ///< Of a bracket: the bracket that it pairs with. Neutral elements have none.
  Span<Index, S> parent;   ///< The innermost open that encloses the element; of a close, its open's parent.
  Span<Index, S> depth;    ///< How many opens enclose the element; of a close, its open's depth.
  Span<Index, S> top;      ///< The top of the stack after the element (Levien's output).
  Span<std::int64_t, S> maximum_depth;  ///< One element: the largest size of the stack.
  Span<std::int64_t, S> unmatched;      ///< One element: how many brackets have no partner.
};

/// What a run found. The fault is what a parser that reads from the left meets first.
struct BracketReport {
  enum class Fault : std::int32_t {
    kNone,
    kUnexpectedClose,  ///< `found` at `position` closes nothing.
    kWrongClose,       ///< `found` at `position`, where `expected` would close the open at `open_position`.
    kUnclosed,      ///< Its document ends at `position`; `expected` would close the open at `open_position`.
    kWrongSegment,  ///< Element `position` of `segments` is wrong; the outputs hold anything.
  };
  std::int64_t unmatched = 0;       ///< As in BracketOutputs.
  std::int64_t maximum_depth = -1;  ///< As in BracketOutputs; -1 where that is not requested.
  std::int64_t position = -1;
  std::int64_t open_position = -1;
  std::int64_t segment = -1;  ///< Which document the fault is in, by its number from 0.
  Fault fault = Fault::kNone;
  std::int32_t found = 0;  ///< A byte, or a token.
  std::int32_t expected = 0;
};

// `segments` says where each document begins: the first at 0, none before the one ahead of it or behind the
// last element. Documents may be empty. An empty span says that all elements are one document.
//
// For every function here: views lie in the executor's memory space and do not overlap; the CPU overloads
// return when the result is there, the CUDA overloads put their work on the executor's stream and return.
// The outputs that are requested have the input's size; Index is std::int32_t (inputs of at most 2^31 - 1
// elements) or std::int64_t. Anything else throws std::invalid_argument before anything runs. Before the
// call the caller reserves match_brackets_scratch_bytes. Depth is not limited, the time of the worst input
// is; no block waits for another. A failing device throws CudaError, a caller who has lost interest
// Interrupted (checked between kernels).
//
// `report` is host memory; it holds what was found once executor.synchronize() has returned. Keep it until
// then; where it is pinned the call stays asynchronous.

/// Of a text of bytes, whose brackets `table` names.
template <class Index>
void match_brackets(CpuExecutor& executor, HostSpan<const std::uint8_t> text, const BracketTable& table,
                    HostSpan<const std::int64_t> segments, const BracketOutputs<Index, Space::kHost>& outputs,
                    BracketReport* report);
template <class Index>
void match_brackets(CudaExecutor& executor, DeviceSpan<const std::uint8_t> text, const BracketTable& table,
                    DeviceSpan<const std::int64_t> segments,
                    const BracketOutputs<Index, Space::kDevice>& outputs, BracketReport* report);

/// Of tokens: k > 0 opens and -k closes kind k, 0 is neutral; INT32_MIN is not a token (it closes no kind).
template <class Index>
void match_brackets(CpuExecutor& executor, HostSpan<const std::int32_t> tokens,
                    HostSpan<const std::int64_t> segments, const BracketOutputs<Index, Space::kHost>& outputs,
                    BracketReport* report);
template <class Index>
void match_brackets(CudaExecutor& executor, DeviceSpan<const std::int32_t> tokens,
                    DeviceSpan<const std::int64_t> segments,
                    const BracketOutputs<Index, Space::kDevice>& outputs, BracketReport* report);

}  // namespace cumulus
