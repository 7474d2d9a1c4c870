#include "server/runtime/completion_poller.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include "server/pipeline/errors.h"

namespace cumulus::server {
namespace {

using Clock = std::chrono::steady_clock;

// Most calls' kernels end within this time of their launch. A sleeping core takes longer to wake than they to
// end.
constexpr std::chrono::microseconds kSpin{300};
// Work that outlasts kSpin is looked at after pauses, unless its end is near. They grow with what it has
// taken: the longer that is, the less it matters how late its end is noticed, and pauses of 5 us leave next
// to nothing of a core to others.
constexpr std::chrono::microseconds kMinPause{5};
constexpr std::chrono::microseconds kMaxPause{20};
constexpr int kPausesOfWork = 200;
// Of a call that never came before nobody knows when it ends. For so long it is worth more of a core.
constexpr std::chrono::microseconds kMaxPauseOfUnknown{7};
constexpr std::chrono::milliseconds kUnknownFor{100};

Clock::duration pause_after(Clock::duration waited, bool unknown) {
  const Clock::duration most = unknown && waited < kUnknownFor ? kMaxPauseOfUnknown : kMaxPause;
  return std::clamp<Clock::duration>(waited / kPausesOfWork, kMinPause, most);
}

/// Empty while the event has not been reached.
std::optional<absl::Status> outcome(const CudaEvent& event, Device& device) {
  try {
    if (!event.reached()) return std::nullopt;
    return absl::OkStatus();
  } catch (const CudaError& error) {
    return device.fault(error);
  }
}

}  // namespace

CompletionPoller::CompletionPoller(Device& device) : device_(device), thread_([this] { run(); }) {}

CompletionPoller::~CompletionPoller() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_one();
  thread_.join();
}

void CompletionPoller::watch(CUstream_st* stream, absl::Duration expected, Done done) {
  const ExpectedEnd end(Clock::now(), expected);
  {
    const std::lock_guard lock(mutex_);
    if (spare_events_.empty()) spare_events_.emplace_back();
    CudaEvent event = std::move(spare_events_.back());
    spare_events_.pop_back();
    event.record(stream);
    incoming_.push_back({std::move(event), std::move(done), end});
  }
  arrived_.notify_one();
}

void CompletionPoller::run() {
  prctl(PR_SET_TIMERSLACK, 1UL);  // nanoseconds; by default the kernel lets a pause of 20 us last 75
  std::vector<Watched> watched;
  Clock::time_point last_news = Clock::now();
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (watched.empty()) arrived_.wait(lock, [this] { return stopping_ || !incoming_.empty(); });
      if (!incoming_.empty()) last_news = Clock::now();
      std::move(incoming_.begin(), incoming_.end(), std::back_inserter(watched));
      incoming_.clear();
      if (watched.empty() && stopping_) return;
    }
    const std::size_t before = watched.size();
    collect(watched);
    const Clock::time_point now = Clock::now();
    const bool any_near = std::any_of(watched.begin(), watched.end(),
                                      [now](const Watched& each) { return each.end.is_near(now); });
    const bool any_unknown =
        std::any_of(watched.begin(), watched.end(), [](const Watched& each) { return !each.end.is_known(); });
    const Clock::duration waited = now - last_news;
    if (watched.size() == before && waited > kSpin && !any_near)
      std::this_thread::sleep_for(pause_after(waited, any_unknown));
  }
}

void CompletionPoller::collect(std::vector<Watched>& watched) {
  for (std::size_t i = 0; i < watched.size();) {
    const std::optional<absl::Status> status = outcome(watched[i].event, device_);
    if (!status) {
      ++i;
      continue;
    }
    Watched reached = std::move(watched[i]);
    watched.erase(watched.begin() + static_cast<std::ptrdiff_t>(i));
    {
      const std::lock_guard lock(mutex_);
      spare_events_.push_back(std::move(reached.event));
    }
    reached.done(*status);
  }
}

}  // namespace cumulus::server
