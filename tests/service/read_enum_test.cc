#include "server/pipeline/read_enum.h"

#include <gtest/gtest.h>

#include "cumulus/v1/array.pb.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

enum class Width { kNarrow, kWide };

absl::StatusOr<Width> read_width(v1::ElementType wire) {
  return read_enum<Width>("index_type", wire,
                          {{v1::ELEMENT_TYPE_UNSPECIFIED, Width::kNarrow},
                           {v1::INT32, Width::kNarrow},
                           {v1::INT64, Width::kWide}});
}

std::string refusal(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(to_std_view(status.message()));
}

TEST(ReadEnum, AnswersWhatAChoiceStandsFor) {
  EXPECT_EQ(*read_width(v1::INT32), Width::kNarrow);
  EXPECT_EQ(*read_width(v1::INT64), Width::kWide);
  EXPECT_EQ(*read_width(v1::ELEMENT_TYPE_UNSPECIFIED), Width::kNarrow);
}

TEST(ReadEnum, NamesWhatIsThereAndWhatWouldBeRight) {
  EXPECT_EQ(refusal(read_width(v1::FLOAT32).status()), "index_type: is FLOAT32; INT32 or INT64 is right");
}

TEST(ReadEnum, GivesTheNumberOfAValueWithoutAName) {
  EXPECT_EQ(refusal(read_width(static_cast<v1::ElementType>(77)).status()),
            "index_type: is 77; INT32 or INT64 is right");
}

TEST(ReadEnum, RefusesUnspecifiedWhereItIsNoChoice) {
  const auto read = [](v1::ElementType wire) {
    return read_enum<int>("type", wire, {{v1::UINT8, 1}, {v1::UINT16, 2}, {v1::UINT32, 4}});
  };
  EXPECT_EQ(*read(v1::UINT16), 2);
  EXPECT_EQ(refusal(read(v1::ELEMENT_TYPE_UNSPECIFIED).status()),
            "type: is 0; UINT8, UINT16 or UINT32 is right");
}

TEST(ReadEnum, ASingleChoiceStandsAlone) {
  EXPECT_EQ(refusal(read_enum<int>("type", v1::INT32, {{v1::UINT8, 1}}).status()),
            "type: is INT32; UINT8 is right");
}

}  // namespace
}  // namespace cumulus::server
