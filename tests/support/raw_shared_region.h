#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "proto/shared_memory.h"

namespace cumulus::testing {

/// A client's end of shared memory, message by message, as proto/cumulus/v1/shared_memory.proto has it: for
/// what the client library does not do.
class RawSharedRegion {
 public:
  explicit RawSharedRegion(const std::string& address)
      : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, address.data(), address.size());
    if (address.front() == '@') name.sun_path[0] = '\0';
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&name),
                        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size())),
              0)
        << std::strerror(errno);
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  ~RawSharedRegion() {
    hang_up();
    unmap();
    if (file_ >= 0) ::close(file_);
  }
  RawSharedRegion(const RawSharedRegion&) = delete;
  RawSharedRegion& operator=(const RawSharedRegion&) = delete;

  /// Asks for a region; false where it is refused.
  bool ask(SharedMemoryMessage::Kind kind, std::size_t bytes = 0) {
    send({.kind = kind, .bytes = bytes});
    return take_answer();
  }
  /// Likewise, and says that CALL may come; `like` is the id of another region.
  bool ask_to_call(SharedMemoryMessage::Kind kind, std::size_t bytes = 0, const std::string& like = "") {
    send({.kind = kind, .offset = kRegionTakesCalls, .bytes = bytes}, like);
    return take_answer();
  }
  bool take_answer() {
    SharedMemoryMessage head;
    std::array<char, kMaxSharedMemoryText> rest{};
    std::array<iovec, 2> parts{iovec{&head, sizeof(head)}, iovec{rest.data(), rest.size()}};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t size = ::recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
    // A server that hung up without having read the question is noticed before what it said.
    if (size < 0 && errno == ECONNRESET) size = ::recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
    if (size < static_cast<ssize_t>(sizeof(head))) return false;
    text.assign(rest.data(), static_cast<std::size_t>(size) - sizeof(head));
    const cmsghdr* rights = CMSG_FIRSTHDR(&message);
    if (head.kind != SharedMemoryMessage::kRegion || rights == nullptr) return false;
    std::memcpy(&file_, CMSG_DATA(rights), sizeof(file_));
    bytes_ = head.bytes;
    said = head.offset;
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (memory == MAP_FAILED) return false;
    memory_ = static_cast<char*>(memory);
    return true;
  }

  void send(const SharedMemoryMessage& message, const std::string& with = "") const {
    const std::string bytes = std::string(reinterpret_cast<const char*>(&message), sizeof(message)) + with;
    send_bytes(bytes.data(), bytes.size());
  }
  void send_bytes(const void* bytes, std::size_t size) const {
    (void)::send(socket_, bytes, size, MSG_NOSIGNAL);
  }
  /// Fills a slot with a piece, of `most` bytes at most, and says so.
  void fill(std::uint32_t slot, const std::string& data, std::size_t offset,
            std::size_t most = kSharedSlotBytes) const {
    const std::size_t size = std::min(most, data.size() - offset);
    std::memcpy(this->slot(slot), data.data() + offset, size);
    send({.kind = SharedMemoryMessage::kFilled, .slot = slot, .offset = offset, .bytes = size});
  }
  struct Answer {
    std::uint32_t code = ~0U;  // where there is none
    std::string text;
    bool of_nothing = false;                     // the transfer had not begun
    std::vector<SharedMemoryMessage> said = {};  // before it
  };
  /// Of a CALL, after what its transfer says.
  Answer answer() const {
    std::array<char, sizeof(SharedMemoryMessage) + kMaxSharedMemoryCall> said_now{};
    std::vector<SharedMemoryMessage> before;
    while (true) {
      const ssize_t size = ::recv(socket_, said_now.data(), said_now.size(), 0);
      SharedMemoryMessage head;
      if (size < static_cast<ssize_t>(sizeof(head))) return {};
      std::memcpy(&head, said_now.data(), sizeof(head));
      if (head.kind != SharedMemoryMessage::kAnswer) {
        before.push_back(head);
        continue;
      }
      return {head.slot,
              std::string(said_now.data() + sizeof(head), static_cast<std::size_t>(size) - sizeof(head)),
              head.offset == kAnswerOfNothing, std::move(before)};
    }
  }
  /// The next message; kind 0 once there is none any more.
  SharedMemoryMessage next() const {
    SharedMemoryMessage message;
    if (::recv(socket_, &message, sizeof(message), 0) != sizeof(message)) return {};
    return message;
  }
  /// Whether the server has closed the connection, which it does soon.
  bool is_closed() const {
    for (int i = 0; i < 64; ++i) {
      if (next().kind == 0) return true;
    }
    return false;
  }
  void unmap() {
    if (memory_ != nullptr) ::munmap(memory_, bytes_);
    memory_ = nullptr;
  }
  void hang_up() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  char* slot(std::uint32_t index) const { return memory_ + index * kSharedSlotBytes; }
  char* memory() const { return memory_; }
  std::size_t bytes() const { return bytes_; }
  int file() const { return file_; }
  /// Of memory that the region takes of the machine.
  std::size_t taken_bytes() const {
    struct stat status {};
    ::fstat(file_, &status);
    return static_cast<std::size_t>(status.st_blocks) * 512;
  }

  std::string text;        // the region's id, or why there is none
  std::uint64_t said = 0;  // the bits of REGION's offset

 private:
  int socket_;
  int file_ = -1;
  char* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace cumulus::testing
