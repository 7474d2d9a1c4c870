#include "cli/app/refusal.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/pipeline/errors.h"

namespace cumulus::cli {
namespace {

const std::vector<FieldName> kFields = {
    {"image", "in.exr"}, {"y.feedback.causal", "--feedback"}, {"method", "--algorithm", "here: auto"}};

std::string told(const absl::Status& refusal) {
  return std::string(name_fields(server::with_context(refusal, "ApplyRecursiveFilter"), kFields).message());
}

TEST(Refusal, NamesTheFileOrTheOptionThatTheFieldCameFrom) {
  EXPECT_EQ(told(server::bad_field("image", "has 5 channels; 1 to 4 is right")),
            "in.exr: has 5 channels; 1 to 4 is right");
  EXPECT_EQ(told(server::bad_field("method", "is 7; FILTER_TILED is right")),
            "--algorithm: is 7; FILTER_TILED is right (here: auto)");
}

TEST(Refusal, KeepsTheNumberOfAnElement) {
  EXPECT_EQ(told(server::bad_field("y.feedback.causal[1]", "is nan")), "--feedback[1]: is nan");
}

TEST(Refusal, LeavesWhatTheCommandHasNoNameFor) {
  const absl::Status inner = server::bad_field("image.subimage", "is 3");
  EXPECT_EQ(name_fields(inner, kFields), inner);
  const absl::Status no_field = server::no_answer("NAN_COORDINATE", "points: point 3 is NaN");
  EXPECT_EQ(name_fields(no_field, kFields), no_field);
  EXPECT_TRUE(name_fields(absl::OkStatus(), kFields).ok());
}

TEST(Refusal, KeepsTheCode) {
  EXPECT_TRUE(absl::IsInvalidArgument(name_fields(server::bad_field("image", "is missing"), kFields)));
}

}  // namespace
}  // namespace cumulus::cli
