#include "server/runtime/decode/helper_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cumulus/decoding/v1/decoding.pb.h"
#include "images/load.h"
#include "server/pipeline/text.h"
#include "server/runtime/decode/system_calls.h"
#include "server/runtime/decode/worker.h"

namespace cumulus::server {
namespace {

using decoding::v1::Order;
using decoding::v1::Reply;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // maps terabytes, and reports to standard error
#else
constexpr bool kSanitized = false;
#endif

/// What this process maps.
std::size_t address_space_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0;
  statm >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGE_SIZE));
}

/// What this process may map from now on. The soft limit only: the hard one could not be raised again, and no
/// worker gets as far as raising either.
bool limit_address_space(std::size_t more_bytes) {
  const rlimit limit{address_space_bytes() + more_bytes, RLIM_INFINITY};
  return kSanitized || ::setrlimit(RLIMIT_AS, &limit) == 0;
}

bool limit(int resource, rlim_t soft, rlim_t hard) {
  const rlimit limits{soft, hard};
  return ::setrlimit(static_cast<__rlimit_resource_t>(resource), &limits) == 0;
}

/// Everything that a worker may not: no more memory, time, files and rights than it needs.
bool bound_worker(const Order& order) {
  constexpr rlim_t kOpenFiles = 16;
  constexpr int kNice = 10;  // where cores are short, a tenth of what a call on the CPU backend gets
  const auto seconds = static_cast<rlim_t>((order.processor_milliseconds() + 999) / 1000);
  // The machine's memory running out, a worker goes before the daemon.
  std::ofstream("/proc/self/oom_score_adj") << "1000";
  return ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::setpriority(PRIO_PROCESS, 0, kNice) == 0 &&
         limit(RLIMIT_CPU, seconds, seconds + 1) && limit(RLIMIT_CORE, 0, 0) && limit(RLIMIT_FSIZE, 0, 0) &&
         limit(RLIMIT_NOFILE, kOpenFiles, kOpenFiles) && limit_address_space(order.bytes()) &&
         (kSanitized || confine_process());
}

constexpr std::pair<const char*, const char*> kFormats[] = {
    {"openexr", "a.exr"}, {"hdr", "a.hdr"}, {"png", "a.png"}, {"tiff", "a.tif"}, {"jpeg", "a.jpg"}};

constexpr images::AlphaColours kMultiplied = images::AlphaColours::kMultiplied;

/// Writes and reads a picture of that format, so that what the libraries look for on the disk and allocate
/// once (64 MiB for OpenImageIO's strings) is there before workers are forked, which then share it.
void exercise(const images::ImageLibrary& library, const std::string& format, const std::string& name) {
  std::array<float, 2 * 2 * 3> pixels{};
  std::string file;
  const auto keep = [&](std::int64_t position, std::span<const std::byte> bytes) {
    const auto place = static_cast<std::size_t>(position);
    file.resize(std::max(file.size(), place + bytes.size()));
    std::memcpy(file.data() + place, bytes.data(), bytes.size());
    return true;
  };
  const images::Picture picture{.width = 2,
                                .height = 2,
                                .channels = 3,
                                .pixels = pixels.data(),
                                .samples = images::Samples::kFloat32,
                                .stored = {images::Samples::kFloat32}};
  if (library.format_of(name).empty() || !library.write(name, picture, keep).empty()) return;
  const images::OpenedFile opened = library.open_memory(format, file, kMultiplied);
  if (opened.file != nullptr)
    (void)library.read(*opened.file, 0, 3, images::Samples::kFloat32, pixels.data());
}

/// True of a thread that runs or would: what it holds, such as a spin lock of OpenImageIO's pool, a fork
/// copies locked.
bool is_awake(const std::filesystem::path& thread) {
  std::ifstream stat(thread / "stat");
  const std::string text{std::istreambuf_iterator<char>(stat), {}};
  const std::size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text.compare(name_end, 3, ") S") != 0;
}

bool others_are_awake() {
  std::error_code gone;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    if (thread.path().filename() != std::to_string(::getpid()) && is_awake(thread.path())) return true;
  }
  return false;
}

/// Waits, no longer than a second, until this thread is the only one that does anything.
void wait_until_others_sleep() {
  for (int wait = 0; wait < 1000 && others_are_awake(); ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// A worker that has no image yet.
struct NewWorker {
  pid_t id = -1;
  Channel daemons_end;
};

class Helper {
 public:
  explicit Helper(Channel daemon) : daemon_(std::move(daemon)) {}

  [[noreturn]] void run() {
    Order order;
    while (true) {
      wait();
      if (!daemon_.receive(order) || !carry_out(order)) break;
    }
    ::_exit(0);  // workers end with this process
  }

 private:
  /// False where the daemon is gone.
  bool carry_out(const Order& order) {
    switch (order.kind()) {
      case Order::START:
        return start(order);
      case Order::DISMISS:
        dismiss(order.worker());
        return true;
      default:
        return daemon_.send(end(order));
    }
  }

  void dismiss(pid_t worker) {
    ::kill(worker, SIGKILL);
    dismissed_.push_back(worker);
  }

  /// Waits for an order, and meanwhile for dismissed workers.
  void wait() {
    constexpr std::chrono::milliseconds kInterval(10);
    do {
      std::erase_if(dismissed_, [](pid_t worker) { return ::waitpid(worker, nullptr, WNOHANG) != 0; });
    } while (!dismissed_.empty() && !daemon_.wait(kInterval));
  }

  /// Sends the daemon a worker, and forks the next one.
  bool start(const Order& order) {
    Reply reply;
    const auto library = images::library_that_reads(order.reader());
    if (!library.ok()) {
      reply.set_no_module(true);
      reply.set_problem(std::string(library.status().message()));
      return daemon_.send(reply);
    }
    prepare(**library);
    NewWorker worker = take_spare(order, *library);
    if (worker.id < 0) worker = fork_worker(order, **library);
    if (worker.id < 0) reply.set_problem(std::strerror(errno));
    reply.set_worker(worker.id);
    if (!daemon_.send(reply, worker.daemons_end.socket())) return false;
    spare_ = fork_worker(order, **library);
    spare_order_ = order;
    spare_library_ = *library;
    return true;
  }

  /// The worker that was forked after the last order, where it still waits, has that library and is bounded
  /// as `order` says.
  NewWorker take_spare(const Order& order, const images::ImageLibrary* library) {
    NewWorker spare = std::exchange(spare_, {});
    if (spare.id < 0 || ::waitpid(spare.id, nullptr, WNOHANG) != 0) return {};
    if (spare_library_ == library && spare_order_.bytes() == order.bytes() &&
        spare_order_.processor_milliseconds() == order.processor_milliseconds())
      return spare;
    dismiss(spare.id);
    return {};
  }

  /// -1 with errno where there can be none.
  NewWorker fork_worker(const Order& order, const images::ImageLibrary& library) {
    absl::StatusOr<std::pair<Channel, Channel>> ends = Channel::pair();
    if (!ends.ok()) return {};
    const pid_t id = ::fork();
    if (id == 0) {
      daemon_.close();
      ends->first.close();  // else it would not notice that the daemon closes its own
      if (!bound_worker(order)) ::_exit(kCannotBeConfined);
      run_decode_worker(library, ends->second);
    }
    if (id < 0) return {};
    return {id, std::move(ends->first)};
  }

  /// Once for all workers.
  void prepare(const images::ImageLibrary& library) {
    if (std::find(prepared_.begin(), prepared_.end(), &library) != prepared_.end()) return;
    library.keep_to_one_thread();
    for (const auto& [format, name] : kFormats) {
      if (library.reads_from_memory(format)) exercise(library, format, name);
    }
    wait_until_others_sleep();
    prepared_.push_back(&library);
  }

  static Reply end(const Order& order) {
    Reply reply;
    int status = 0;
    // Before the kill: what ended by itself says why.
    if (::waitpid(order.worker(), &status, WNOHANG) == 0) {
      ::kill(order.worker(), SIGKILL);
      ::waitpid(order.worker(), &status, 0);
    }
    reply.set_wait_status(status);
    return reply;
  }

  Channel daemon_;
  std::vector<const images::ImageLibrary*> prepared_;
  NewWorker spare_;  // so that an image need not wait for a fork
  Order spare_order_;
  const images::ImageLibrary* spare_library_ = nullptr;
  std::vector<pid_t> dismissed_;  // and not gone yet
};

}  // namespace

void run_decode_helper(Channel daemon) {
  ::prctl(PR_SET_NAME, "cumulus-decode");
  // A drain may still want images; the end of the connection ends this process.
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::signal(signal, SIG_IGN);
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (nowhere >= 0 && !(kSanitized && stream == STDERR_FILENO)) ::dup2(nowhere, stream);
  }
  Helper(std::move(daemon)).run();
}

}  // namespace cumulus::server
