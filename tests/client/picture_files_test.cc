#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/commands/sampling_table/map_file.h"
#include "cli/files/channels.h"
#include "cli/files/finite.h"
#include "tests/support/process_accounts.h"
#include "tests/support/tries.h"

namespace cumulus::cli {
namespace {

using ::testing::HasSubstr;

template <class T>
Array array_of(ElementType type, Shape shape, const std::vector<T>& values) {
  absl::StatusOr<Array> array = Array::allocate(type, std::move(shape));
  EXPECT_TRUE(array.ok() && array->bytes().size() == values.size() * sizeof(T));
  std::memcpy(array->mutable_bytes().data(), values.data(), values.size() * sizeof(T));
  return *std::move(array);
}

std::vector<std::uint8_t> bytes_of(const Array& array) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(array.bytes().data());
  return {first, first + array.bytes().size()};
}

/// As the pictures of TIFF's specification: 1 2 3 over 4 5 6, stored in each of the eight ways.
TEST(Upright, OfEachOrientation) {
  const std::vector<std::pair<Shape, std::vector<std::uint8_t>>> stored = {
      {{2, 3, 1}, {1, 2, 3, 4, 5, 6}}, {{2, 3, 1}, {3, 2, 1, 6, 5, 4}}, {{2, 3, 1}, {6, 5, 4, 3, 2, 1}},
      {{2, 3, 1}, {4, 5, 6, 1, 2, 3}}, {{3, 2, 1}, {1, 4, 2, 5, 3, 6}}, {{3, 2, 1}, {3, 6, 2, 5, 1, 4}},
      {{3, 2, 1}, {6, 3, 5, 2, 4, 1}}, {{3, 2, 1}, {4, 1, 5, 2, 6, 3}}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const auto& [shape, pixels] = stored[static_cast<std::size_t>(orientation - 1)];
    const auto turned = upright(array_of(ElementType::kUint8, shape, pixels), orientation);
    ASSERT_TRUE(turned.ok());
    EXPECT_EQ(turned->shape(), (Shape{2, 3, 1})) << orientation;
    EXPECT_EQ(bytes_of(*turned), (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6})) << orientation;
  }
}

TEST(Channels, AreFoundByNameAndByLayer) {
  const std::vector<std::string> all = {"R", "G", "B", "key.R", "key.G", "key.fill.R"};
  EXPECT_EQ(*find_channels(all, {"B", "key"}), (std::vector<int>{2, 3, 4}));
  EXPECT_EQ(*find_channels(all, {"key.fill.R"}), std::vector<int>{5});
  EXPECT_THAT(std::string(find_channels(all, {"rim"}).status().message()),
              HasSubstr("no channel or layer rim"));
}

TEST(Channels, AreTakenAndPutBack) {
  const Array picture = array_of<std::uint8_t>(ElementType::kUint8, {1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const auto part = take_channels(picture.view(), {2, 0});
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(bytes_of(*part), (std::vector<std::uint8_t>{3, 1, 6, 4}));
  Array whole = array_of<std::uint8_t>(ElementType::kUint8, {1, 2, 3}, {0, 0, 0, 0, 0, 0});
  put_channels(part->view(), 1, whole);
  EXPECT_EQ(bytes_of(whole), (std::vector<std::uint8_t>{0, 3, 1, 0, 6, 4}));
}

TEST(NonFinite, HalvesAreToldByTheirBits) {
  const std::vector<std::uint16_t> halves = {0x3C00, 0x7C00, 0xFC00, 0x7E00, 0x7BFF, 0xFFFF};
  Array pixels = array_of(ElementType::kFloat16, {1, 6, 1}, halves);
  NonFiniteValues found;
  EXPECT_FALSE(treat_non_finite(NonFinite::kRefuse, "a.exr", {"Y"}, pixels, found).ok());
  EXPECT_EQ(found.count, 4);
  EXPECT_EQ(found.first, "row 0, column 1, channel Y is inf");
  found = {};
  EXPECT_TRUE(treat_non_finite(NonFinite::kClamp, "a.exr", {"Y"}, pixels, found).ok());
  const std::vector<std::uint16_t> clamped = {0x3C00, 0x7BFF, 0xFBFF, 0, 0x7BFF, 0};
  EXPECT_EQ(std::memcmp(pixels.bytes().data(), clamped.data(), sizeof(clamped[0]) * clamped.size()), 0);
}

TEST(NonFinite, InfinityBecomesThePicturesLargest) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Array pixels = array_of<float>(ElementType::kFloat32, {2, 2}, {1e6F, -kInfinity, kInfinity, NAN});
  NonFiniteValues found;
  ASSERT_TRUE(treat_non_finite(NonFinite::kClamp, "a.npy", {}, pixels, found).ok());
  EXPECT_EQ(found.first, "row 0, column 1 is -inf");
  const std::vector<float> clamped(pixels.values<float>()->begin(), pixels.values<float>()->end());
  EXPECT_EQ(clamped, (std::vector<float>{1e6F, -1e6F, 1e6F, 0}));
}

/// 96 MiB, so that every processor has a share.
TEST(NonFinite, AreFoundOnAllProcessors) {
  constexpr std::int64_t kSide = 5017;
  std::vector<float> values(std::size_t{kSide} * kSide, 1);
  for (const std::size_t at : {values.size() / 3, values.size() / 2, values.size() - 1}) values[at] = NAN;
  Array pixels = array_of<float>(ElementType::kFloat32, {kSide, kSide}, values);
  NonFiniteValues found;
  const auto find = [&] { EXPECT_TRUE(treat_non_finite(NonFinite::kKeep, "a.npy", {}, pixels, found).ok()); };
  find();
  EXPECT_EQ(found.count, 3);
  EXPECT_EQ(found.first, "row 1672, column 1672 is nan");
  find();  // of another array, as of another part of a file
  EXPECT_EQ(found.count, 6);
  if (std::thread::hardware_concurrency() > 1) {
    EXPECT_TRUE(testing::once_in_three([&] { return testing::share_of_the_caller(find) < 0.8; }));
  }
}

TEST(Luminance, IsOfTheChromaticities) {
  const auto rec709 = luminance_of({0.64F, 0.33F, 0.30F, 0.60F, 0.15F, 0.06F, 0.3127F, 0.3290F});
  ASSERT_TRUE(rec709.has_value());
  EXPECT_NEAR((*rec709)[0], 0.2126, 1e-4);
  EXPECT_NEAR((*rec709)[1], 0.7152, 1e-4);
  EXPECT_NEAR((*rec709)[2], 0.0722, 1e-4);
  const auto acescg = luminance_of({0.713F, 0.293F, 0.165F, 0.830F, 0.128F, 0.044F, 0.32168F, 0.33767F});
  ASSERT_TRUE(acescg.has_value());
  EXPECT_NEAR((*acescg)[0], 0.2722, 1e-4);
  EXPECT_NEAR((*acescg)[1], 0.6741, 1e-4);
  EXPECT_FALSE(luminance_of({0.3F, 0.3F, 0.3F, 0.3F, 0.3F, 0.3F, 0.3F, 0.3F}).has_value());
}

}  // namespace
}  // namespace cumulus::cli
