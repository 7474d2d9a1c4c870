#include "server/runtime/connections/frame_guard.h"

#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>

#include "tests/support/http2_frames.h"

namespace cumulus::server {
namespace {

using namespace testing::http2;
using ::testing::HasSubstr;

std::string frame_of(char type, char flags, std::size_t size) {
  // Contents that look like frames.
  return frame(type, flags, 1, std::string(size, type == kData ? kContinuation : 'x'));
}

/// Of 1000 bytes of headers, and 10 resets a second.
class FrameGuards : public ::testing::Test {
 protected:
  bool accept(const std::string& bytes, absl::Duration later = absl::ZeroDuration()) {
    return guard_.accept(std::as_bytes(std::span(bytes)), start_ + later);
  }

  const absl::Time start_ = absl::FromUnixSeconds(1);
  FrameGuard guard_{{.header_bytes = 1000, .resets = 10}};
};

TEST_F(FrameGuards, TakeHeadersAndDataOfAnyNumber) {
  std::string call = frame_of(kHeaders, kEndHeaders, 900) + frame_of(kData, 0, 20'000);
  std::string split = frame_of(kHeaders, 0, 400) + frame_of(kContinuation, 0, 300) +
                      frame_of(kContinuation, kEndHeaders, 200);
  EXPECT_TRUE(accept(kPreface));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(accept(call + split));
}

TEST_F(FrameGuards, DoNotLookAtTls) {
  const std::string hello = std::string("\x16\x03\x01", 3) + std::string(21, 'h');
  EXPECT_TRUE(accept(hello + frame_of(kHeaders, 0, 500)));
  EXPECT_TRUE(accept(frame_of(kContinuation, 0, 4000)));
}

TEST_F(FrameGuards, TakeBytesInPiecesOfAnySize) {
  const std::string all = kPreface + frame_of(kData, 0, 300) + frame_of(kHeaders, 0, 500) +
                          frame_of(kContinuation, 0, 400) + frame_of(kContinuation, 0, 400);
  const std::size_t last = all.size() - 400 - 1;  // the byte that ends the last frame's header
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(accept(all.substr(i, 1)), i < last) << i;
  }
}

TEST_F(FrameGuards, EndHeadersThatDoNotEnd) {
  EXPECT_TRUE(accept(kPreface + frame_of(kHeaders, 0, 500)));
  EXPECT_TRUE(accept(frame_of(kContinuation, 0, 400)));
  EXPECT_FALSE(accept(frame_of(kContinuation, 0, 400).substr(0, 9)));
  EXPECT_THAT(guard_.problem(), HasSubstr("more than 1000 bytes (max_header_bytes)"));
  EXPECT_FALSE(accept(frame_of(kData, 0, 1))) << "for good";
}

TEST_F(FrameGuards, EndFramesOfNothing) {
  EXPECT_TRUE(accept(kPreface + frame_of(kHeaders, 0, 10)));
  int frames = 0;
  while (accept(frame_of(kContinuation, 0, 0))) ++frames;
  EXPECT_EQ(frames, 109);  // of nine bytes each
}

TEST_F(FrameGuards, EndResetsWithoutEnd) {
  const std::string reset = frame_of(kHeaders, kEndHeaders, 10) + frame_of(kResetStream, 0, 4);
  EXPECT_TRUE(accept(kPreface));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(accept(reset));
  EXPECT_TRUE(accept(reset, absl::Milliseconds(101)));
  EXPECT_FALSE(accept(reset, absl::Milliseconds(102)));
  EXPECT_THAT(guard_.problem(), HasSubstr("more than 10 calls a second are reset (max_resets)"));
}

TEST_F(FrameGuards, TakeResetsNowAndThen) {
  const std::string reset = frame_of(kHeaders, kEndHeaders, 10) + frame_of(kResetStream, 0, 4);
  EXPECT_TRUE(accept(kPreface));
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(accept(reset, i * absl::Milliseconds(100)));
}

}  // namespace
}  // namespace cumulus::server
