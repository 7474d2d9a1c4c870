#include "server/runtime/array_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "google/rpc/error_details.pb.h"

namespace cumulus::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

v1::ArraySpec spec_of(v1::ElementType type, const std::vector<std::int64_t>& extents) {
  v1::ArraySpec spec;
  write_array_spec({type, extents}, spec);
  return spec;
}

TEST(ArraySpec, TheSizeIsTheProductOfTheExtentsAndTheElement) {
  const auto shape = parse_array_spec(spec_of(v1::FLOAT32, {512, 1024, 3}), "image.inline_array.spec");
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(shape->elements(), 512u * 1024u * 3u);
  EXPECT_EQ(shape->bytes(), 512u * 1024u * 3u * 4u);
  EXPECT_EQ(shape->text(), "FLOAT32 [512, 1024, 3]");
}

TEST(ArraySpec, EveryElementTypeHasItsSize) {
  const std::vector<std::pair<v1::ElementType, std::size_t>> sizes = {
      {v1::UINT8, 1}, {v1::UINT16, 2},  {v1::UINT32, 4},  {v1::UINT64, 8}, {v1::INT32, 4},
      {v1::INT64, 8}, {v1::FLOAT16, 2}, {v1::FLOAT32, 4}, {v1::FLOAT64, 8}};
  EXPECT_EQ(sizes.size() + 1, static_cast<std::size_t>(v1::ElementType_descriptor()->value_count()));
  for (const auto& [type, size] : sizes) EXPECT_EQ(element_size(type), size) << v1::ElementType_Name(type);
}

TEST(ArraySpec, AnArrayMayBeEmptyOrASingleElement) {
  EXPECT_EQ(parse_array_spec(spec_of(v1::FLOAT64, {0, 5}), "spec")->bytes(), 0u);
  EXPECT_EQ(parse_array_spec(spec_of(v1::FLOAT64, {}), "spec")->bytes(), 8u);
}

TEST(ArraySpec, SurvivesTheWayToTheMessageAndBack) {
  const ArrayShape shape{v1::UINT16, {3, 1, 7, 1, 1, 1, 1, 2}};
  v1::ArraySpec spec;
  spec.add_shape(99);
  write_array_spec(shape, spec);
  EXPECT_EQ(parse_array_spec(spec, "spec").value(), shape);
}

struct WrongSpec {
  v1::ArraySpec spec;
  std::string field;
  std::string text;
};

TEST(ArraySpec, EveryWrongFieldIsNamedWithItsPath) {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  const std::vector<WrongSpec> wrong = {
      {spec_of(v1::ELEMENT_TYPE_UNSPECIFIED, {1}), "in.spec.element_type", "is 0; set one of UINT8"},
      {spec_of(static_cast<v1::ElementType>(77), {1}), "in.spec.element_type", "is 77; set one of UINT8"},
      {spec_of(v1::UINT8, {4, -1}), "in.spec.shape[1]", "is -1; extents are at least 0"},
      {spec_of(v1::UINT8, std::vector<std::int64_t>(9, 1)), "in.spec.shape", "has 9 extents; at most 8"},
      {spec_of(v1::UINT8, {kHuge}), "in.spec.shape", "more than can be addressed"},
      {spec_of(v1::FLOAT64, {kHuge, kHuge, kHuge}), "in.spec.shape", "more than can be addressed"},
      {spec_of(v1::FLOAT64, {0, kHuge, kHuge}), "in.spec.shape", "more than can be addressed"},
      // 2^62 + 2^62 + 2^62 + 2^62 elements of 4 bytes: 0 in 64 bits.
      {spec_of(v1::FLOAT32, {std::int64_t{1} << 31, std::int64_t{1} << 31, 4}), "in.spec.shape",
       "more than can be addressed"},
  };
  for (const WrongSpec& test : wrong) {
    const absl::Status status = parse_array_spec(test.spec, "in.spec").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << test.field;
    EXPECT_THAT(std::string(status.message()), StartsWith(test.field + ": "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.text));
  }
}

TEST(ArraySpec, ASizeThatIsTooLargeToCountIsNeverSmall) {
  const ArrayShape shape{v1::FLOAT64, {std::int64_t{1} << 40, std::int64_t{1} << 40}};
  EXPECT_EQ(shape.elements(), kMaxArrayBytes);
  EXPECT_EQ(shape.bytes(), kMaxArrayBytes);
}

}  // namespace
}  // namespace cumulus::server
