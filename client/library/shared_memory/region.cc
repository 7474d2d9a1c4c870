#include "library/shared_memory/region.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

namespace cumulus {
namespace {

absl::Status no_region(std::string_view why) {
  return absl::UnavailableError(absl::StrCat("no shared memory: ", std::string(why)));
}

absl::Status system_failure(std::string_view what) {
  return no_region(absl::StrCat(std::string(what), ": ", std::strerror(errno)));
}

/// Names of the abstract namespace are anybody's to take: behind one, only this user and root are believed.
bool may_be_believed(int socket, const std::string& address) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (address.front() != '@') return true;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == ::geteuid() || peer.uid == 0);
}

absl::Status connect_to(int socket, const std::string& address) {
  sockaddr_un name{};
  if (address.size() >= sizeof(name.sun_path)) return no_region("its name is too long");
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, address.data(), address.size());
  if (address.front() == '@') name.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&name), size) != 0) return system_failure(address);
  return may_be_believed(socket, address) ? absl::OkStatus() : no_region("another user serves it");
}

/// The descriptor that came with a message; -1 where none did.
int descriptor_of(msghdr& message) {
  int file = -1;
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (rights != nullptr && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS)
    std::memcpy(&file, CMSG_DATA(rights), sizeof(file));
  return file;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedRegion>> SharedRegion::open(const std::string& address,
                                                                 const SharedMemoryMessage& want,
                                                                 const std::string& like) {
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (socket < 0) return system_failure("socket");
  std::unique_ptr<SharedRegion> region(new SharedRegion(socket));
  // A server that does not answer for so long is no help.
  const timeval limit{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  if (absl::Status connected = connect_to(socket, address); !connected.ok()) return connected;
  SharedMemoryMessage first = want;
  if (want.kind != SharedMemoryMessage::kDevice) first.offset = kRegionTakesCalls;
  if (!region->send(first, like)) return system_failure("asking for it");
  if (absl::Status answered = region->take_answer(); !answered.ok()) return answered;
  if (want.kind == SharedMemoryMessage::kDevice) return region;
  if (absl::Status mapped = region->map(); !mapped.ok()) return mapped;
  return region;
}

SharedRegion::~SharedRegion() {
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
  if (file_ >= 0) ::close(file_);
  ::close(socket_);
}

absl::Status SharedRegion::take_answer() {
  SharedMemoryMessage head;
  std::array<char, kMaxSharedMemoryText> text{};
  std::array<iovec, 2> parts{iovec{&head, sizeof(head)}, iovec{text.data(), text.size()}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
  if (size < 0) return system_failure("its answer");
  file_ = descriptor_of(message);
  if (static_cast<std::size_t>(size) < sizeof(head)) return no_region("the server hung up");
  const std::string_view rest(text.data(), static_cast<std::size_t>(size) - sizeof(head));
  if (head.kind == SharedMemoryMessage::kRefused)
    return absl::FailedPreconditionError(absl::StrCat("no shared memory: ", std::string(rest)));
  if (head.kind != SharedMemoryMessage::kRegion || file_ < 0) return no_region(rest);
  id_ = std::make_shared<const std::string>(rest);
  becomes_the_servers_ = (head.offset & kRegionIsTaken) != 0;
  takes_calls_ = (head.offset & kRegionTakesCalls) != 0;
  takes_gifts_ = (head.offset & kRegionTakesGifts) != 0;
  takes_knocks_ = (head.offset & kRegionTakesKnocks) != 0;
  takes_early_copies_ = (head.offset & kRegionTakesEarlyCopies) != 0;
  known_ = (head.offset & kRegionIsKnown) != 0;
  bytes_ = head.bytes;
  return absl::OkStatus();
}

absl::Status SharedRegion::map() {
  struct stat status {};
  const int seals = ::fcntl(file_, F_GET_SEALS);
  if (::fstat(file_, &status) != 0 || static_cast<std::size_t>(status.st_size) != bytes_ || seals < 0 ||
      (seals & F_SEAL_SHRINK) == 0)
    return no_region("it is not what the server says");
  void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) return system_failure("mapping it");
  memory_ = {static_cast<std::byte*>(memory), bytes_};
  return absl::OkStatus();
}

bool SharedRegion::make_private() const {
  return ::mmap(memory_.data(), memory_.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file_, 0) !=
         MAP_FAILED;
}

void SharedRegion::replace_memory() const {
  // Where even this fails, a copy that is under way reaches what is mapped here still.
  (void)::mmap(memory_.data(), memory_.size(), PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  hang_up();
}

void SharedRegion::hang_up() const { ::shutdown(socket_, SHUT_RDWR); }

bool SharedRegion::send(const SharedMemoryMessage& message, std::string_view text) const {
  std::array<iovec, 2> parts{iovec{const_cast<SharedMemoryMessage*>(&message), sizeof(message)},
                             iovec{const_cast<char*>(text.data()), text.size()}};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = text.empty() ? 1 : parts.size();
  return ::sendmsg(socket_, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(message) + text.size());
}

bool SharedRegion::quiet() const {
  char byte = 0;
  return ::recv(socket_, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) < 0 &&
         (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace cumulus
