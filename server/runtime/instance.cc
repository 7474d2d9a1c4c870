#include "server/runtime/instance.h"

#include <absl/random/random.h>
#include <absl/strings/str_format.h>

#include <cstdint>
#include <string_view>

#include "proto/metadata.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {

std::string new_instance() {
  absl::BitGen random;
  return absl::StrFormat("%016x", absl::Uniform<std::uint64_t>(random));
}

absl::Status check_instance(const grpc::ServerContextBase& context, const std::string& instance) {
  constexpr std::size_t kMaxShown = 64;
  const auto sent = context.client_metadata().find(kInstanceKey);
  if (sent == context.client_metadata().end()) return absl::OkStatus();
  const std::string_view theirs(sent->second.data(), sent->second.size());
  if (theirs == instance) return absl::OkStatus();
  return not_found(
      "INSTANCE_RESTARTED",
      concat("the session belongs to instance '", cut_text(theirs, kMaxShown),
             "' of the server, and this is instance ", instance,
             ": it has restarted, or another server answers now; create a session and upload again"));
}

}  // namespace cumulus::server
