#include "server/runtime/connections/guarded_tls.h"

#include <dlfcn.h>
#include <openssl/ssl.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>
#include <span>

#include "proto/steady_time.h"

namespace cumulus::server {
namespace {

// Of connections that begin from now on; 0: they have no guard.
std::atomic<std::size_t> max_header_bytes{0};
std::atomic<std::size_t> max_resets{0};

void free_guard(void* /*parent*/, void* guard, CRYPTO_EX_DATA* /*data*/, int /*index*/, long /*argument*/,
                void* /*pointer*/) {
  delete static_cast<FrameGuard*>(guard);
}

/// The connection's guard, made when it is first read from; null where it has none.
FrameGuard* guard_of(SSL* connection) {
  const FrameGuard::Limits limits{max_header_bytes, max_resets};
  if (limits.header_bytes == 0 || SSL_is_server(connection) == 0) return nullptr;
  static const int kIndex = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, &free_guard);
  if (void* const known = SSL_get_ex_data(connection, kIndex)) return static_cast<FrameGuard*>(known);
  auto guard = std::make_unique<FrameGuard>(limits);
  // Freed with the connection. gRPC reads from one by one thread at a time.
  return SSL_set_ex_data(connection, kIndex, guard.get()) == 1 ? guard.release() : nullptr;
}

/// False where these bytes are not to be taken.
bool may_be_taken(SSL* connection, std::span<const std::byte> bytes) {
  FrameGuard* const guard = guard_of(connection);
  if (guard == nullptr) return true;
  const bool fine_before = guard->problem().empty();
  if (guard->accept(bytes, steady_now())) return true;
  if (fine_before) spdlog::warn("a client's TLS connection: {}; it is closed", guard->problem());
  return false;
}

}  // namespace

void guard_tls(const FrameGuard::Limits& limits) {
  max_resets = limits.resets;
  max_header_bytes = limits.header_bytes;
}

}  // namespace cumulus::server

extern "C" int SSL_read(SSL* connection, void* buffer, int size) {
  using Function = int (*)(SSL*, void*, int);
  static const auto kNext = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "SSL_read"));
  const int received = kNext(connection, buffer, size);
  if (received <= 0) return received;
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(buffer),
                                         static_cast<std::size_t>(received));
  return cumulus::server::may_be_taken(connection, bytes) ? received : -1;
}
