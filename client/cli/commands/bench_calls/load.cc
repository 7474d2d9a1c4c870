#include "cli/commands/bench_calls/load.h"

#include <absl/time/clock.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "cumulus/v1/array.pb.h"
#include "cumulus/v1/operations.pb.h"
#include "cumulus/v1/sampling_table.pb.h"
#include "cumulus/v1/summed_area_table.pb.h"
#include "library/wire.h"
#include "proto/steady_time.h"

namespace cumulus::cli {
namespace {

/// Shared with the answers, of which the last may come when the load is over.
class Load : public std::enable_shared_from_this<Load> {
 public:
  Load(Connection& connection, const SmallCall& call, const LoadShape& shape, CallOptions options)
      : connection_(connection),
        call_(call),
        end_(steady_now() + shape.duration),
        pace_(shape.pace),
        options_(std::move(options)) {}

  void begin() {
    {
      const std::lock_guard lock(mutex_);
      ++open_;
    }
    const absl::Time start = steady_now();
    connection_.call(call_.method, call_.request, options_, CallContext(),
                     [self = shared_from_this(), start](const absl::StatusOr<grpc::ByteBuffer>& answer) {
                       self->finish(start, answer.status());
                     });
  }
  absl::StatusOr<std::vector<double>> wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return open_ == 0; });
    if (!status_.ok()) return status_;
    return std::move(seconds_);
  }

 private:
  void finish(absl::Time start, const absl::Status& status) {
    const absl::Time now = steady_now();
    bool again = false;
    {
      const std::lock_guard lock(mutex_);
      --open_;
      status_.Update(status);
      seconds_.push_back(absl::ToDoubleSeconds(now - start));
      again = status_.ok() && now < end_;
      if (!again && open_ == 0) ended_.notify_all();
    }
    if (!again) return;
    absl::SleepFor(start + pace_ - now);
    begin();
  }

  Connection& connection_;
  const SmallCall& call_;
  const absl::Time end_;
  const absl::Duration pace_;
  const CallOptions options_;
  std::mutex mutex_;
  std::condition_variable ended_;
  int open_ = 0;
  absl::Status status_;
  std::vector<double> seconds_;
};

v1::InlineArray square_of_ones(int side) {
  v1::InlineArray image;
  image.mutable_spec()->set_element_type(v1::FLOAT32);
  for (int i = 0; i < 2; ++i) image.mutable_spec()->add_shape(side);
  const std::vector<float> ones(static_cast<std::size_t>(side) * static_cast<std::size_t>(side), 1.0F);
  const auto bytes = std::as_bytes(std::span(ones));
  image.mutable_data()->assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return image;
}

}  // namespace

SmallCall small_call() {
  constexpr int kSide = 16;
  v1::FilterBoxRequest request;
  *request.mutable_image()->mutable_inline_array() = square_of_ones(kSide);
  request.set_radius(1);
  return {"/cumulus.v1.Operations/FilterBox", wire::serialize(request)};
}

SmallCall table_call() {
  constexpr int kSide = 64;
  v1::BuildSamplingTableRequest request;
  *request.mutable_weights()->mutable_inline_array() = square_of_ones(kSide);
  request.set_projection(v1::PLANE);
  return {"/cumulus.v1.Operations/BuildSamplingTable", wire::serialize(request)};
}

void LoadResult::add(const LoadResult& more) {
  seconds.insert(seconds.end(), more.seconds.begin(), more.seconds.end());
  elapsed += more.elapsed;
}

double LoadResult::calls_per_second() const {
  return static_cast<double>(seconds.size()) / absl::ToDoubleSeconds(elapsed);
}

double LoadResult::quantile(double share) {
  std::sort(seconds.begin(), seconds.end());
  const auto index = static_cast<std::size_t>(share * static_cast<double>(seconds.size()));
  return seconds[std::min(index, seconds.size() - 1)];
}

absl::StatusOr<LoadResult> run_load(Connection& connection, const SmallCall& call, const LoadShape& shape,
                                    const CallOptions& options) {
  const absl::Time start = steady_now();
  const auto load = std::make_shared<Load>(connection, call, shape, options);
  for (int i = 0; i < shape.callers; ++i) load->begin();
  absl::StatusOr<std::vector<double>> seconds = load->wait();
  if (!seconds.ok()) return seconds.status();
  return LoadResult{*std::move(seconds), steady_now() - start};
}

}  // namespace cumulus::cli
