#include "server/runtime/connections/guarded_sockets.h"

#include <dlfcn.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include "proto/steady_time.h"

namespace cumulus::server {
namespace {

struct GuardedSocket {
  ino_t inode;
  std::string peer;
  FrameGuard guard;  // of the thread that reads, which changes but is one at a time
};

class GuardedSockets {
 public:
  void add(int number, std::shared_ptr<GuardedSocket> socket) {
    const std::unique_lock lock(mutex_);
    sockets_[number] = std::move(socket);
  }
  void remove(int number, ino_t inode) {
    const std::unique_lock lock(mutex_);
    const auto found = sockets_.find(number);
    if (found != sockets_.end() && found->second->inode == inode) sockets_.erase(found);
  }
  std::shared_ptr<GuardedSocket> find(int number) const {
    const std::shared_lock lock(mutex_);
    const auto found = sockets_.find(number);
    return found != sockets_.end() ? found->second : nullptr;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<int, std::shared_ptr<GuardedSocket>> sockets_;
};

GuardedSockets& guarded_sockets() {
  static auto* const kSockets = new GuardedSockets;  // gRPC's threads may read until the process has ended
  return *kSockets;
}

bool is_still(const GuardedSocket& guarded, int number) {
  struct stat status {};
  return ::fstat(number, &status) == 0 && status.st_ino == guarded.inode;
}

/// False where the bytes of `message` are not to be taken.
bool may_be_taken(int number, const msghdr& message, std::size_t received) {
  const std::shared_ptr<GuardedSocket> guarded = guarded_sockets().find(number);
  if (guarded == nullptr) return true;
  FrameGuard& guard = guarded->guard;
  const bool fine_before = guard.problem().empty();
  const absl::Time now = steady_now();
  const std::span<const iovec> pieces(message.msg_iov, message.msg_iovlen);
  for (const iovec& piece : pieces) {
    const std::size_t bytes = std::min(received, piece.iov_len);
    received -= bytes;
    if (!guard.accept({static_cast<const std::byte*>(piece.iov_base), bytes}, now)) break;
  }
  // The number may be another socket's by now, which is none of gRPC's.
  if (guard.problem().empty() || !is_still(*guarded, number)) return true;
  if (fine_before) spdlog::warn("{}: {}; its connection is closed", guarded->peer, guard.problem());
  return false;
}

}  // namespace

void guard_socket(int socket, ino_t inode, std::string peer, const FrameGuard::Limits& limits) {
  guarded_sockets().add(
      socket, std::make_shared<GuardedSocket>(GuardedSocket{inode, std::move(peer), FrameGuard(limits)}));
}

void forget_guard(int socket, ino_t inode) { guarded_sockets().remove(socket, inode); }

}  // namespace cumulus::server

extern "C" ssize_t recvmsg(int socket, msghdr* message, int flags) {
  using Function = ssize_t (*)(int, msghdr*, int);
  static const auto kNext = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "recvmsg"));
  const ssize_t received = kNext(socket, message, flags);
  if (received <= 0 || cumulus::server::may_be_taken(socket, *message, static_cast<std::size_t>(received)))
    return received;
  errno = ECONNRESET;
  return -1;
}
