#include "server/runtime/shared_memory/socket.h"

#include <grp.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

constexpr int kBacklog = 128;

struct SocketName {
  sockaddr_un address{};
  socklen_t size = 0;
};

/// '@' stands for the 0 that begins a name of the abstract namespace.
SocketName name_of(const std::string& address) {
  SocketName name;
  name.address.sun_family = AF_UNIX;
  std::memcpy(name.address.sun_path, address.data(), address.size());
  if (address.front() == '@') name.address.sun_path[0] = '\0';
  name.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
  return name;
}

absl::Status cannot_serve(const std::string& address) {
  return absl::InvalidArgumentError(concat("shared_memory.socket: cannot make the socket ", address, ": ",
                                           std::strerror(errno),
                                           "; choose another path (--shared-memory-socket), or off"));
}

/// Whether somebody takes connections there.
bool answers(const SocketName& name) {
  const Descriptor probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  return probe && ::connect(probe.number(), reinterpret_cast<const sockaddr*>(&name.address), name.size) == 0;
}

/// Of a path: takes the place of a socket that a dead server left there, and no other file's.
absl::Status clear_path(const std::string& path, const SocketName& name) {
  struct stat file {};
  if (::lstat(path.c_str(), &file) != 0) return absl::OkStatus();
  if (!S_ISSOCK(file.st_mode) || answers(name)) {
    return absl::InvalidArgumentError(concat("shared_memory.socket: ", path, " exists, and is ",
                                             S_ISSOCK(file.st_mode) ? "another server's" : "no socket",
                                             "; choose another path (--shared-memory-socket), or off"));
  }
  ::unlink(path.c_str());
  return absl::OkStatus();
}

absl::StatusOr<Descriptor> listen_at(const std::string& address, std::optional<gid_t> group) {
  const SocketName name = name_of(address);
  const bool path = address.front() == '/';
  if (path) {
    if (const absl::Status clear = clear_path(address, name); !clear.ok()) return clear;
  }
  Descriptor listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return cannot_serve(address);
  // What the file is made with: nobody else gets in meanwhile.
  if (path) ::fchmod(listener.number(), S_IRUSR | S_IWUSR);
  if (::bind(listener.number(), reinterpret_cast<const sockaddr*>(&name.address), name.size) != 0)
    return cannot_serve(address);
  if (path && group) {
    if (::chown(address.c_str(), static_cast<uid_t>(-1), *group) != 0 ||
        ::chmod(address.c_str(), S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP) != 0)
      return cannot_serve(address);
  }
  if (::listen(listener.number(), kBacklog) != 0) return cannot_serve(address);
  return listener;
}

absl::StatusOr<std::optional<gid_t>> find_group(const std::string& name) {
  if (name.empty()) return std::optional<gid_t>();
  constexpr std::size_t kEntryBytes = 1 << 16;
  std::vector<char> entry(kEntryBytes);
  group found{};
  group* result = nullptr;
  ::getgrnam_r(name.c_str(), &found, entry.data(), entry.size(), &result);
  if (result == nullptr)
    return absl::InvalidArgumentError(concat("shared_memory.group: there is no group '", name, "' here"));
  return std::optional<gid_t>(found.gr_gid);
}

std::optional<ucred> peer_of(const Descriptor& socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer;
}

bool is_member(const Descriptor& socket, const ucred& peer, gid_t group) {
  if (peer.gid == group) return true;
  std::array<gid_t, 1024> groups{};
  socklen_t size = sizeof(groups);
  if (::getsockopt(socket.number(), SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) != 0) return false;
  const auto end = groups.begin() + size / sizeof(gid_t);
  return std::find(groups.begin(), end, group) != end;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedMemorySocket>> SharedMemorySocket::start(Runtime& runtime) {
  const Configuration::SharedMemory& settings = runtime.configuration.shared_memory;
  std::string address = settings.new_name ? concat("@cumulus-", runtime.instance) : settings.socket;
  if (address.empty()) return nullptr;
  const absl::StatusOr<std::optional<gid_t>> group = find_group(settings.group);
  if (!group.ok()) return group.status();
  absl::StatusOr<Descriptor> listener = listen_at(address, *group);
  if (!listener.ok()) return listener.status();
  spdlog::info("sharing memory at {}", address);
  return std::unique_ptr<SharedMemorySocket>(
      new SharedMemorySocket(runtime, std::move(address), *std::move(listener), *group));
}

SharedMemorySocket::SharedMemorySocket(Runtime& runtime, std::string address, Descriptor listener,
                                       std::optional<gid_t> group)
    : runtime_(runtime),
      address_(std::move(address)),
      listener_(std::move(listener)),
      group_(group),
      shares_(std::make_shared<RegionShares>(runtime.configuration.shared_memory)),
      spare_(runtime.devices, runtime.configuration.shared_memory),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

SharedMemorySocket::~SharedMemorySocket() {
  stopping_ = true;
  wake();
  thread_.join();
  withdraw();
  {
    const std::lock_guard lock(mutex_);
    for (const Worker& worker : workers_) worker.link->close();
  }
  for (Worker& worker : workers_) worker.thread.join();
}

void SharedMemorySocket::withdraw() const {
  if (address_.front() == '/') ::unlink(address_.c_str());
}

absl::StatusOr<std::shared_ptr<SharedLink>> SharedMemorySocket::find(const std::string& region,
                                                                     const Principal& caller) {
  std::shared_ptr<SharedLink> link;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = links_.find(region); found != links_.end()) link = found->second;
  }
  if (link == nullptr)
    return not_found("REGION_NOT_FOUND", "there is no shared region of this id: ask for a new one");
  if (absl::Status own = link->bind(caller); !own.ok()) return own;
  return link;
}

void SharedMemorySocket::begin_calls_by(RegionCalls* calls) {
  const std::unique_lock lock(calls_mutex_);
  calls_ = calls;
}

absl::Status SharedMemorySocket::begin(const std::shared_ptr<SharedLink>& link, const Principal& caller,
                                       Asked asked) {
  const std::shared_lock lock(calls_mutex_);
  if (calls_ == nullptr) return no_answer("DRAINING", "the server takes no more calls");
  return calls_->begin(link, caller, std::move(asked));
}

std::shared_ptr<EarlyCopy> SharedMemorySocket::begin_early(const std::shared_ptr<SharedRegion>& region,
                                                           const Principal& caller, std::size_t bytes) {
  const std::shared_lock lock(calls_mutex_);
  return calls_ == nullptr ? nullptr : calls_->begin_early(region, caller, bytes);
}

void SharedMemorySocket::wake() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_.number(), &one, sizeof(one));
}

void SharedMemorySocket::run() {
  std::array<pollfd, 2> entries{pollfd{listener_.number(), POLLIN, 0}, pollfd{wake_.number(), POLLIN, 0}};
  while (true) {
    spare_.fill();
    (void)::poll(entries.data(), entries.size(), -1);
    std::uint64_t times = 0;
    if (entries[1].revents != 0) (void)!::read(wake_.number(), &times, sizeof(times));
    if (stopping_) return;
    if (entries[0].revents != 0) accept_one();
    join_done();
  }
}

void SharedMemorySocket::accept_one() {
  Descriptor socket(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) {
    constexpr absl::Duration kUntilThereAreDescriptors = absl::Milliseconds(10);
    if (errno != EAGAIN && errno != EINTR) absl::SleepFor(kUntilThereAreDescriptors);
    return;
  }
  const std::optional<ucred> peer = peer_of(socket);
  if (!peer) return;
  absl::StatusOr<RegionShares::Share> share = shares_->begin(peer->uid);
  const absl::Status room = share.status();
  const auto link =
      std::make_shared<SharedLink>(std::move(socket), share.ok() ? *std::move(share) : RegionShares::Share());
  if (peer->uid != ::geteuid() && !(group_ && is_member(link->socket(), *peer, *group_))) {
    link->refuse(concat("user ", peer->uid, " is neither the server's nor in shared_memory.group"));
    return;
  }
  if (!room.ok()) {
    link->refuse(to_std_view(room.message()));
    return;
  }
  const std::lock_guard lock(mutex_);
  Worker& worker = workers_.emplace_back();
  worker.link = link;
  try {
    worker.thread = std::thread([this, &worker] { serve(worker); });
  } catch (const std::system_error& error) {
    link->refuse(concat("no thread for it: ", error.what()));
    workers_.pop_back();
  }
}

void SharedMemorySocket::serve(Worker& worker) {
  const std::string id = worker.link->open(*shares_, spare_, runtime_);
  wake();  // it may have taken the spare ring
  if (!id.empty()) {
    {
      const std::lock_guard lock(mutex_);
      links_[id] = worker.link;
      // Who knows the id, which nobody can guess, is who made that region.
      const auto like = links_.find(worker.link->like());
      const std::optional<Principal> owner = like == links_.end() ? std::nullopt : like->second->owner();
      if (owner.has_value()) (void)worker.link->bind(*owner);
    }
    worker.link->serve(*this);
  }
  worker.link->close();
  {
    const std::lock_guard lock(mutex_);
    links_.erase(id);
    worker.done = true;  // and is joined from now on
  }
  wake();
}

void SharedMemorySocket::join_done() {
  std::list<Worker> done;
  {
    const std::lock_guard lock(mutex_);
    for (auto worker = workers_.begin(); worker != workers_.end();) {
      const auto next = std::next(worker);
      if (worker->done) done.splice(done.end(), workers_, worker);
      worker = next;
    }
  }
  for (Worker& worker : done) worker.thread.join();
}

}  // namespace cumulus::server
