#pragma once

#include <string>
#include <vector>

#include "cumulus/operation.h"

/// Matching brackets: partners, parents and depths in nested structure, as a stack would give them.
namespace cumulus {

/// What match_brackets can tell of each element. Elements are numbered from 0; -1 says that there is none.
enum class BracketOutput {
  kPartner,       ///< `partner` [n]: the bracket that a bracket pairs with
  kParent,        ///< `parent` [n]: the innermost open that encloses the element; of a close, its open's
  kDepth,         ///< `depth` [n]: how many opens enclose the element; of a close, as its open's
  kStackTop,      ///< `stack_top` [n]: the top of the stack after the element
  kMaximumDepth,  ///< `maximum_depth`, int64 [1]: the largest size of the stack
};

struct BracketMatchOptions {
  /// Of texts of bytes: opens and closes in turn, 1 to 128 pairs of different bytes; empty: "()[]{}".
  std::string pairs;
  /// Each at most once.
  std::vector<BracketOutput> outputs = {BracketOutput::kPartner};
  /// Brackets without a partner are no error: they get -1, and the rest is matched.
  bool lenient = false;
  /// int64 indices even where int32 would do.
  bool wide_indices = false;
};

/// Of `text`: uint8 [n], bytes; or int32 [n], tokens: k > 0 opens and -k closes kind k, 0 is neutral.
/// Result: the outputs asked for, int32 (int64 from 2^31 elements on); where lenient `unmatched`, int64 [1],
/// besides: how many brackets have no partner. FAILED_PRECONDITION for unbalanced input that is not lenient:
/// error_metadata has `position`, the first element (or n, the end) that a reader from the left takes offence
/// at, `found` and `expected` there, and `open_position`, the open that `expected` would close.
Operation match_brackets(const Source& text, const BracketMatchOptions& options = {});

}  // namespace cumulus
