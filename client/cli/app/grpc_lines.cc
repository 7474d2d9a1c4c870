#include "cli/app/grpc_lines.h"

#include <grpc/support/log.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace cumulus::cli {
namespace {

void say_assertion(gpr_log_func_args* line) {
  if (std::string_view(line->message).rfind("assertion failed", 0) != 0) return;
  std::fprintf(stderr, "cumulus: gRPC ends the process: %s (%s:%d)\n", line->message, line->file, line->line);
}

}  // namespace

void let_grpc_say_assertions_only() {
  if (std::getenv("GRPC_VERBOSITY") != nullptr) return;
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  gpr_set_log_function(say_assertion);
}

}  // namespace cumulus::cli
