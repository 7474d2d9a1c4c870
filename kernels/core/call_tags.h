#pragma once

#include <cstdint>

namespace cumulus {

/// Numbers the calls that write to memory which is not cleared between them, so that what an earlier call has
/// left there differs from what this one writes: a word that does not carry the call's tag has not been
/// written yet. A call may have several tags, one after the other, for words that it uses several times. Zero
/// is no tag.
class CallTags {
 public:
  struct Next {
    std::uint32_t tag;  // the first
    std::uint32_t last;
    bool clear;  // all words have to be zeroed before the call: its tag may be in them, or anything
  };

  /// The next call's, `count` of them (at least 1). Where it asks for clearing it does so again until `take`
  /// says that this has been done.
  constexpr Next next(std::uint32_t count = 1) const {
    const bool again = last_ > UINT32_MAX - count;
    const std::uint32_t tag = again ? 1 : last_ + 1;
    return {tag, tag + (count - 1), again || last_ == 0};
  }
  /// The call goes ahead, with its words cleared where `next` asked for that.
  constexpr void take(const Next& call) { last_ = call.last; }

  /// With `last` given out already; 0: none.
  constexpr explicit CallTags(std::uint32_t last = 0) : last_(last) {}

 private:
  std::uint32_t last_;
};

}  // namespace cumulus
