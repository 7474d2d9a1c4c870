#include "cli/commands/bench_calls/plain_socket.h"

#include <absl/strings/str_cat.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "cli/files/shares.h"
#include "proto/steady_time.h"

namespace cumulus::cli {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

bool receive(int socket, std::size_t bytes) {
  std::vector<std::byte> piece(kPiece);
  while (bytes > 0) {
    const ssize_t received = ::recv(socket, piece.data(), std::min(bytes, kPiece), 0);
    if (received <= 0) return false;
    bytes -= static_cast<std::size_t>(received);
  }
  return true;
}

bool send(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), std::min(bytes.size(), kPiece), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

/// One connection within this process.
class SocketPair {
 public:
  SocketPair() : open_(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) == 0) {}
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;
  ~SocketPair() {
    if (!open_) return;
    for (const int end : ends_) ::close(end);
  }

  bool open() const { return open_; }
  bool move(std::span<const std::byte> bytes) const {
    bool received = false;
    std::thread receiver([&] { received = receive(ends_[1], bytes.size()); });
    const bool sent = send(ends_[0], bytes);
    ::shutdown(ends_[0], SHUT_WR);
    receiver.join();
    return sent && received;
  }

 private:
  std::array<int, 2> ends_{};
  const bool open_;
};

}  // namespace

absl::StatusOr<absl::Duration> move_through_sockets(std::span<const std::byte> bytes, int sockets) {
  const auto count = static_cast<std::size_t>(sockets);
  std::vector<SocketPair> pairs(count);
  if (!std::all_of(pairs.begin(), pairs.end(), [](const SocketPair& pair) { return pair.open(); }))
    return absl::InternalError(absl::StrCat("no sockets to compare with: ", std::strerror(errno)));
  std::atomic<bool> moved = true;
  const absl::Time start = steady_now();
  for_each_share(count, bytes.size(), [&](std::size_t share, std::size_t begin, std::size_t end) {
    if (!pairs[share].move(bytes.subspan(begin, end - begin))) moved = false;
  });
  const absl::Duration took = steady_now() - start;
  if (!moved) return absl::InternalError("a plain socket failed");
  return took;
}

}  // namespace cumulus::cli
