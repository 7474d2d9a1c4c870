#include "cli/commands/bench_calls/plain_socket.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

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

}  // namespace

absl::StatusOr<absl::Duration> move_through_socket(std::span<const std::byte> bytes) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return absl::InternalError(absl::StrCat("no sockets to compare with: ", std::strerror(errno)));
  const absl::Time start = absl::Now();
  bool received = false;
  std::thread receiver([&] { received = receive(ends[1], bytes.size()); });
  const bool sent = send(ends[0], bytes);
  ::shutdown(ends[0], SHUT_WR);
  receiver.join();
  const absl::Duration took = absl::Now() - start;
  for (const int end : ends) ::close(end);
  if (!sent || !received) return absl::InternalError("a plain socket failed");
  return took;
}

}  // namespace cumulus::cli
