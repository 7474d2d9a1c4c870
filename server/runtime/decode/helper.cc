#include "server/runtime/decode/helper.h"

#include <spawn.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "cumulus/decoding/v1/decoding.pb.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"
#include "server/runtime/decode/helper_process.h"

namespace cumulus::server {
namespace {

using decoding::v1::Order;
using decoding::v1::Reply;

/// The name by which a process knows that it is a helper, and where it finds its end of the channel.
constexpr char kHelperName[] = "cumulus-decode";
constexpr int kHelperSocket = 3;

/// Of how posix_spawn starts a helper: its socket, and signals as they are at a program's start.
class SpawnSettings {
 public:
  explicit SpawnSettings(const Channel& socket) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_adddup2(&actions_, socket.socket().number(), kHelperSocket);
    ::posix_spawnattr_init(&attributes_);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  /// This program anew; -1 with errno.
  pid_t spawn() const {
    std::string name = kHelperName;
    const std::array<char*, 2> arguments = {name.data(), nullptr};
    pid_t id = -1;
    errno = ::posix_spawn(&id, "/proc/self/exe", &actions_, &attributes_, arguments.data(), environ);
    return errno == 0 ? id : -1;
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

absl::Status no_process(std::string_view what, std::string_view why) {
  return exhausted("machine:processes",
                   concat(what, ": ", why, "; the machine has no processes or memory left: try later"));
}

absl::Status helper_ended() {
  return unavailable("DECODER_ENDED",
                     "the process that starts image decoders has ended, and is started anew: try again",
                     absl::Milliseconds(100));
}

}  // namespace

void become_decode_helper_if_started_as_one() {
  if (std::strcmp(program_invocation_name, kHelperName) != 0) return;
  ::close_range(kHelperSocket + 1, ~0U, 0);  // what was not to be inherited, and was
  run_decode_helper(Channel(Descriptor(kHelperSocket)));
}

/// One helper, from its start to its end, which is that of its workers, too.
class DecodeHelper::Process {
 public:
  static absl::StatusOr<std::shared_ptr<Process>> start(absl::Duration answer_limit) {
    absl::StatusOr<std::pair<Channel, Channel>> ends = Channel::pair();
    if (!ends.ok()) return ends.status();
    const pid_t id = SpawnSettings(ends->second).spawn();
    if (id < 0) return no_process("the image decoder cannot be started", std::strerror(errno));
    return std::make_shared<Process>(std::move(ends->first), id, answer_limit);
  }

  Process(Channel channel, pid_t id, absl::Duration answer_limit)
      : channel_(std::move(channel)), id_(id), answer_limit_(absl::ToChronoMilliseconds(answer_limit)) {}
  ~Process() {
    end();
    ::waitpid(id_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return id_; }
  void tell(const Order& order) const { channel_.send(order); }
  /// Nothing where the helper has ended, or does not answer, which ends it.
  std::optional<Reply> ask(const Order& order, Descriptor* file = nullptr) {
    const std::lock_guard lock(mutex_);
    Reply reply;
    if (channel_.send(order) && channel_.wait(answer_limit_) && channel_.receive(reply, file)) return reply;
    end();
    return std::nullopt;
  }

 private:
  void end() const { ::kill(id_, SIGKILL); }  // of its workers the kernel does it

  std::mutex mutex_;  // one question at a time
  const Channel channel_;
  const pid_t id_;
  const std::chrono::milliseconds answer_limit_;
};

DecodeHelper::DecodeHelper(absl::Duration answer_limit) : answer_limit_(answer_limit) {}
DecodeHelper::~DecodeHelper() = default;

absl::StatusOr<std::shared_ptr<DecodeHelper::Process>> DecodeHelper::running_process() {
  const std::lock_guard lock(mutex_);
  if (process_ == nullptr) {
    absl::StatusOr<std::shared_ptr<Process>> started = Process::start(answer_limit_);
    if (!started.ok()) return started.status();
    process_ = *std::move(started);
  }
  return process_;
}

void DecodeHelper::forget(const std::shared_ptr<Process>& process) {
  const std::lock_guard lock(mutex_);
  if (process_ != process) return;
  spdlog::warn("image decoding: its process {} has ended; another is started", process->id());
  process_ = nullptr;
}

absl::StatusOr<DecodeHelper::Worker> DecodeHelper::start_worker(const std::string& reader,
                                                                const Bounds& bounds) {
  Order order;
  order.set_kind(Order::START);
  order.set_reader(reader);
  order.set_bytes(bounds.working_bytes);
  order.set_processor_milliseconds(absl::ToInt64Milliseconds(bounds.processor_time));
  constexpr int kTries = 2;  // one that has ended since the last image is noticed only now
  for (int i = 0; i < kTries; ++i) {
    absl::StatusOr<std::shared_ptr<Process>> process = running_process();
    if (!process.ok()) return process.status();
    Descriptor socket;
    const std::optional<Reply> reply = (*process)->ask(order, &socket);
    if (reply && reply->no_module()) return absl::UnimplementedError(reply->problem());
    if (reply && !reply->problem().empty())
      return no_process("a decoder cannot be started", reply->problem());
    if (reply) return Worker{reply->worker(), Channel(std::move(socket)), *std::move(process)};
    forget(*process);
  }
  return helper_ended();
}

absl::Status DecodeHelper::raise_memory(const Worker& worker, std::size_t bytes) {
  rlimit limit{};
  const bool known = ::prlimit(worker.id, RLIMIT_AS, nullptr, &limit) == 0;
  if (known && limit.rlim_cur == RLIM_INFINITY) return absl::OkStatus();  // a sanitized one
  limit.rlim_cur += bytes;
  if (known && ::prlimit(worker.id, RLIMIT_AS, &limit, nullptr) == 0) return absl::OkStatus();
  if (errno == ESRCH) return absl::OkStatus();  // it has ended, which is noticed by asking it
  return absl::InternalError(concat("a decoder cannot be bounded: ", std::strerror(errno)));
}

void DecodeHelper::dismiss_worker(const Worker& worker) {
  Order order;
  order.set_kind(Order::DISMISS);
  order.set_worker(worker.id);
  worker.helper->tell(order);
}

absl::StatusOr<int> DecodeHelper::end_worker(const Worker& worker) {
  Order order;
  order.set_kind(Order::END);
  order.set_worker(worker.id);
  const std::optional<Reply> reply = worker.helper->ask(order);
  if (!reply) return helper_ended();
  return reply->wait_status();
}

}  // namespace cumulus::server
