#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cumulus/operation.h"

/// Matching brackets: partners, parents and depths in nested structure, as a stack would give them; and clips
/// of scenes, which nest as brackets do. (R. Levien, "The stack monoid revisited", 2021.)
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
  std::string pairs = {};
  /// Each at most once.
  std::vector<BracketOutput> outputs = {BracketOutput::kPartner};
  /// Brackets without a partner are no error: they get -1, and the rest is matched.
  bool lenient = false;
  /// int64 indices even where int32 would do.
  bool wide_indices = false;
  /// Many documents in one array: int64, the element at which each begins, the first at 0, none before the
  /// one ahead of it. Each is matched on its own. Otherwise there is one document.
  std::optional<Source> segments = std::nullopt;
};

/// Of `text`: uint8 [n], bytes; or int32 [n], tokens: k > 0 opens and -k closes kind k, 0 is neutral.
/// Result: the outputs asked for, int32 (int64 from 2^31 elements on); where lenient `unmatched`, int64 [1],
/// besides: how many brackets have no partner. FAILED_PRECONDITION, reason UNBALANCED_BRACKETS, for
/// unbalanced input that is not lenient: error_metadata has `position`, the first element (or the end) that a
/// reader from the left takes offence at, `found` and `expected` there, `open_position`, the open that
/// `expected` would close, and `segment`, the number of the document, where there are several.
/// WRONG_SEGMENTS, with the `position` of the first wrong one.
Operation match_brackets(const Source& text, const BracketMatchOptions& options = {});

/// What an element of a scene is, as intersect_clips takes it.
inline constexpr std::uint8_t kDrawElement = 0;
inline constexpr std::uint8_t kBeginClip = 1;
inline constexpr std::uint8_t kEndClip = 2;

/// What a scene's clips leave of its elements. `elements`: uint8 [n], a sequence in which clips nest as
/// brackets do. `boxes`: float32 [n, 4], x0, y0, x1, y1 of each; infinite where there is no limit, no NaN,
/// not read of ends. Result: `bounds`, float32 [n, 4], each box intersected with those of all clips that
/// enclose it; an end has the bounds of its clip. Nothing is left where x1 <= x0 or y1 <= y0.
/// FAILED_PRECONDITION, with `position` in error_metadata: UNBALANCED_CLIPS, or WRONG_ELEMENT for another
/// element or a NaN.
Operation intersect_clips(const Source& elements, const Source& boxes);

}  // namespace cumulus
