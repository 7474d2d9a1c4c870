#include "cli/app/grpc_lines.h"

#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace cumulus::cli {
namespace {

TEST(GrpcLines, AreWhyGrpcEndsTheProcessAndNothingElse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        ::unsetenv("GRPC_VERBOSITY");
        let_grpc_say_assertions_only();
        gpr_log(GPR_ERROR, "of no use to a command's user");
        GPR_ASSERT(1 + 1 == 3);
      },
      "^cumulus: gRPC ends the process: assertion failed: 1 \\+ 1 == 3");
}

}  // namespace
}  // namespace cumulus::cli
