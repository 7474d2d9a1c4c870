#pragma once

namespace cumulus::cli {

/// What gRPC would say, a command's own message says, but for why it ends the process: an assertion of its
/// own. Changes nothing where the environment says what gRPC is to say (GRPC_VERBOSITY).
void let_grpc_say_assertions_only();

}  // namespace cumulus::cli
