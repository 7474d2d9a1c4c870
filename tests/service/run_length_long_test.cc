// Requests for arrays that 32 bits do not count: what is made of them, without the arrays.
#include <gtest/gtest.h>

#include <cstdint>

#include "server/operations/run_length/encode.h"
#include "server/pipeline/errors.h"
#include "tests/support/status_details.h"

namespace cumulus {
namespace {

using server::ArrayShape;
using server::InputArray;
using server::ops::EncodeRunLengths;
using testing::expect_bad_field;
using testing::expect_reason;

constexpr std::int64_t kMost32 = (std::int64_t{1} << 32) - 1;

absl::StatusOr<EncodeRunLengths::Plan> plan_for(std::int64_t elements, v1::ElementType length_type,
                                                v1::RunOverflow overflow,
                                                v1::RunLengthForm form = v1::RUN_COUNTS) {
  v1::EncodeRunLengthsRequest request;
  request.set_length_type(length_type);
  request.set_overflow(overflow);
  request.set_form(form);
  const InputArray array{"array", ArrayShape{v1::UINT8, {elements}}, {}};
  return EncodeRunLengths::validate(request, {&array, 1});
}

std::int64_t cut_for(std::int64_t elements, v1::ElementType length_type, v1::RunOverflow overflow) {
  const auto plan = plan_for(elements, length_type, overflow);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? plan->params.cut_elements : -1;
}

TEST(LongRuns, AreSplitOnRequestWhereCountsOf32BitsCouldOverflow) {
  EXPECT_EQ(cut_for(kMost32 + 1, v1::UINT32, v1::SPLIT_LONG_RUNS), std::int64_t{1} << 31);
  EXPECT_EQ(cut_for(kMost32, v1::UINT32, v1::SPLIT_LONG_RUNS), 0);
  EXPECT_EQ(cut_for(kMost32 + 1, v1::UINT64, v1::SPLIT_LONG_RUNS), 0);
  EXPECT_EQ(cut_for(kMost32 + 1, v1::UINT32, v1::REFUSE_LONG_RUNS), 0);
}

TEST(LongRuns, AreRefusedByTheirNumberWhereTheyMayNotBeSplit) {
  const auto plan = plan_for(kMost32 + 1, v1::UINT32, v1::REFUSE_LONG_RUNS);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const grpc::Status status =
      server::to_grpc(EncodeRunLengths::conclude(*plan, {.runs = 3, .unfitting_run = 2}));
  expect_reason(status, grpc::StatusCode::FAILED_PRECONDITION, "RUN_TOO_LONG");
  EXPECT_NE(status.error_message().find("run 2 has more than 2^32 - 1 elements"), std::string::npos);
  EXPECT_TRUE(EncodeRunLengths::conclude(*plan, {.runs = 3, .unfitting_run = -1}).ok());
}

TEST(LongRuns, HaveNoEndsOf32Bits) {
  const auto ends_of = [](std::int64_t elements, v1::ElementType type) {
    return server::to_grpc(plan_for(elements, type, v1::REFUSE_LONG_RUNS, v1::RUN_ENDS).status());
  };
  EXPECT_TRUE(ends_of(kMost32, v1::UINT32).ok());
  EXPECT_TRUE(ends_of(kMost32 + 1, v1::UINT64).ok());
  expect_bad_field(ends_of(kMost32 + 1, v1::UINT32), "length_type",
                   "the ends of 4294967296 elements overflow; UINT64 is right");
}

}  // namespace
}  // namespace cumulus
