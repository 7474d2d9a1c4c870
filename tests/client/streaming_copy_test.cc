#include "library/shared_memory/streaming_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cumulus {
namespace {

/// What lies there, from one place to another, and nothing beside it.
void expect_copied(std::size_t from_place, std::size_t to_place, std::size_t bytes) {
  constexpr std::byte kUntouched{0xa5};
  std::vector<std::byte> from(from_place + bytes);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>((i * 2654435761U) >> 13);
  std::vector<std::byte> to(to_place + bytes + 64, kUntouched);
  std::vector<std::byte> expected = to;
  std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(from_place), bytes,
              expected.begin() + static_cast<std::ptrdiff_t>(to_place));
  copy_streaming(std::span(to).subspan(to_place, bytes), std::span(from).subspan(from_place, bytes));
  EXPECT_EQ(to, expected) << bytes << " bytes from " << from_place << " to " << to_place;
}

TEST(StreamingCopy, IsACopyFromAnywhereToAnywhere) {
  for (const std::size_t bytes : {0U, 1U, 15U, 63U, 64U, 65U, 127U, 128U, 191U, 4096U, 5003U}) {
    for (const std::size_t from_place : {0U, 1U, 8U, 16U, 63U}) {
      for (const std::size_t to_place : {0U, 1U, 4U, 16U, 48U, 63U})
        expect_copied(from_place, to_place, bytes);
    }
  }
}

TEST(CopyChoice, TakesTheQuickerWayAndTriesTheOtherNowAndThen) {
  using Way = CopyChoice::Way;
  for (const Way quicker : {Way::kCached, Way::kStreaming}) {
    CopyChoice choice;
    int quick = 0;
    for (int i = 0; i < 160; ++i) {
      const Way way = choice.choose();
      quick += way == quicker;
      choice.note(way, std::chrono::microseconds(way == quicker ? 90 : 120));
    }
    EXPECT_GE(quick, 145);
    EXPECT_LE(quick, 152);
  }
}

TEST(CopyChoice, FollowsAMachineThatChanges) {
  using Way = CopyChoice::Way;
  CopyChoice choice;
  for (int i = 0; i < 100; ++i) {
    const Way way = choice.choose();
    choice.note(way, std::chrono::microseconds(way == Way::kStreaming ? 90 : 120));
  }
  for (int i = 0; i < 200; ++i) choice.note(choice.choose(), std::chrono::microseconds(120));
  int cached = 0;
  for (int i = 0; i < 320; ++i) {
    const Way way = choice.choose();
    cached += way == Way::kCached;
    choice.note(way, std::chrono::microseconds(way == Way::kCached ? 90 : 120));
  }
  EXPECT_GT(cached, 250);
}

}  // namespace
}  // namespace cumulus
