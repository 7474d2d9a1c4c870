#include "server/runtime/decode/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

absl::Status no_memory_file(std::string_view what) {
  return exhausted("machine:memory", concat(what, ": ", std::strerror(errno),
                                            "; the machine has no memory or open files left: try later"));
}

absl::StatusOr<Descriptor> create_memory_file(std::size_t bytes) {
  Descriptor file(::memfd_create("cumulus-image", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ::ftruncate(file.number(), static_cast<off_t>(bytes)) != 0) {
    return no_memory_file("an image's memory cannot be made");
  }
  return file;
}

bool seal(const Descriptor& file, int seals) { return ::fcntl(file.number(), F_ADD_SEALS, seals) == 0; }

bool write_all(const Descriptor& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.number(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Room for one descriptor beside a message.
union Control {
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
  cmsghdr alignment;
};

}  // namespace

absl::StatusOr<std::pair<Channel, Channel>> Channel::pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return no_memory_file("a decoder cannot be connected");
  }
  return std::pair(Channel(Descriptor(ends[0])), Channel(Descriptor(ends[1])));
}

bool Channel::send(const google::protobuf::MessageLite& message, const Descriptor& file) const {
  std::string bytes = message.SerializeAsString();
  if (bytes.empty()) bytes.push_back('\0');  // nothing would look like the end of the connection
  iovec piece{bytes.data(), bytes.size()};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  Control control{};
  if (file) {
    header.msg_control = control.bytes.data();
    header.msg_controllen = control.bytes.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = file.number();
    std::memcpy(CMSG_DATA(rights), &number, sizeof(number));
  }
  ssize_t sent = 0;
  do sent = ::sendmsg(socket_.number(), &header, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

bool Channel::wait(std::chrono::milliseconds limit) const {
  pollfd entry{socket_.number(), POLLIN, 0};
  return ::poll(&entry, 1, static_cast<int>(limit.count())) > 0;
}

bool Channel::receive(google::protobuf::MessageLite& message, Descriptor* file) const {
  std::string bytes(kMaxMessageBytes, '\0');
  iovec piece{bytes.data(), bytes.size()};
  Control control{};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  // Without room for them, files that come unasked for are dropped.
  if (file != nullptr) {
    header.msg_control = control.bytes.data();
    header.msg_controllen = control.bytes.size();
  }
  ssize_t received = 0;
  do received = ::recvmsg(socket_.number(), &header, MSG_CMSG_CLOEXEC);
  while (received < 0 && errno == EINTR);
  if (received <= 0) return false;
  const cmsghdr* const rights = file != nullptr ? CMSG_FIRSTHDR(&header) : nullptr;
  if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(rights), sizeof(number));
    *file = Descriptor(number);
  }
  if ((header.msg_flags & MSG_TRUNC) != 0) return false;
  const bool empty = received == 1 && bytes[0] == '\0';
  return message.ParseFromArray(bytes.data(), empty ? 0 : static_cast<int>(received));
}

absl::StatusOr<Descriptor> sealed_copy(std::span<const std::string_view> pieces) {
  absl::StatusOr<Descriptor> file = create_memory_file(0);
  if (!file.ok()) return file;
  for (const std::string_view piece : pieces) {
    if (!write_all(*file, piece)) return no_memory_file("an image's memory cannot be written");
  }
  if (!seal(*file, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
    return no_memory_file("an image's memory cannot be sealed");
  }
  return file;
}

absl::StatusOr<Descriptor> shared_memory(std::size_t bytes) {
  absl::StatusOr<Descriptor> file = create_memory_file(bytes);
  if (file.ok() && !seal(*file, F_SEAL_SHRINK | F_SEAL_GROW)) {
    return no_memory_file("an image's memory cannot be sealed");
  }
  return file;
}

absl::StatusOr<HostMemory> map_finished(const Descriptor& file, std::size_t bytes) {
  if (!seal(file, F_SEAL_WRITE)) {
    return absl::InternalError(concat("a decoder's pixels cannot be sealed: ", std::strerror(errno)));
  }
  void* const data = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (data == MAP_FAILED) return no_memory_file("a decoded image cannot be mapped");
  return HostMemory(static_cast<std::byte*>(data), bytes, nullptr,
                    [](void*, std::byte* mapped, std::size_t size) { ::munmap(mapped, size); });
}

Mapping::Mapping(const Descriptor& file, std::size_t bytes, Access access)
    : data_(::mmap(nullptr, bytes, access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE,
                   access == Access::kRead ? MAP_PRIVATE : MAP_SHARED, file.number(), 0)),
      bytes_(bytes) {
  if (data_ == MAP_FAILED) throw std::bad_alloc();
}

Mapping::~Mapping() { ::munmap(data_, bytes_); }

}  // namespace cumulus::server
