#include "server/runtime/metrics/telemetry.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <iterator>
#include <map>
#include <string_view>
#include <type_traits>
#include <utility>

#include "proto/steady_time.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;

constexpr const char* kOtherPrincipals = "other";

/// From what an idle server takes for a small call to the longest deadline.
Histogram::BucketBoundaries second_buckets() {
  return {1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1,
          0.25, 0.5,    1,    2.5,  5,      10,   30,   60,    300};
}

/// The name of a status as gRPC's clients know it: "RESOURCE_EXHAUSTED".
std::string code_name(absl::StatusCode code) { return absl::StatusCodeToString(code); }

std::string_view direction_of(std::string_view method) {
  if (method == "WriteBuffer" || method == "WriteShared") return "upload";
  return method == "ReadBuffer" || method == "ReadShared" ? "download" : "";
}

std::string_view transport_of(const CallRecord& call) {
  if (call.method == "WriteShared" || call.method == "ReadShared") return "shared";
  return call.client.substr(0, 5) == "unix:" ? "unix" : "tcp";
}

template <class M>
auto make_family(prometheus::Registry& registry, const std::string& name, const std::string& help) {
  if constexpr (std::is_same_v<M, Counter>) {
    return &prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  } else {
    return &prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }
}

}  // namespace

struct Telemetry::Families {
  /// One counter for each value of one label, made when it is first wanted.
  class CountersByLabel {
   public:
    CountersByLabel(Family<Counter>& family, std::string label) : family_(family), label_(std::move(label)) {}

    Counter& of(const std::string& value) {
      const std::lock_guard lock(mutex_);
      const auto found = counters_.find(value);
      if (found != counters_.end()) return *found->second;
      return *counters_.emplace(value, &family_.Add({{label_, value}})).first->second;
    }

   private:
    Family<Counter>& family_;
    const std::string label_;
    std::mutex mutex_;
    std::map<std::string, Counter*> counters_;
  };

  struct Method {
    std::map<absl::StatusCode, Counter*> handled;
    Histogram* duration = nullptr;
  };

  prometheus::Registry registry;
  Family<Counter>* handled = make_family<Counter>(registry, "cumulus_rpc_handled_total",
                                                  "Calls that have been answered, by method and status.");
  Family<Histogram>* durations = make_family<Histogram>(registry, "cumulus_rpc_duration_seconds",
                                                        "From a call's arrival to its answer, by method.");
  Family<Histogram>* waits = make_family<Histogram>(registry, "cumulus_queue_wait_seconds",
                                                    "For how long calls of operations waited for a device, "
                                                    "by principal: those that the configuration names, "
                                                    "and all others.");
  Family<Histogram>* stages =
      make_family<Histogram>(registry, "cumulus_stage_seconds",
                             "What parts of successful calls of operations took: input, compute, output.");
  CountersByLabel rejections{
      *make_family<Counter>(registry, "cumulus_rejections_total",
                            "Calls that did not succeed, by the reason in their answer's ErrorInfo."),
      "reason"};
  CountersByLabel decode_refusals{*make_family<Counter>(registry, "cumulus_decode_refusals_total",
                                                        "Encoded images that were not decoded, by reason."),
                                  "reason"};
  Family<Counter>* moved =
      make_family<Counter>(registry, "cumulus_transfer_bytes_total",
                           "Bytes of buffers that uploads and downloads moved, by direction and transport.");

  Histogram* input = &stages->Add({{"stage", "input"}}, second_buckets());
  Histogram* compute = &stages->Add({{"stage", "compute"}}, second_buckets());
  Histogram* output = &stages->Add({{"stage", "output"}}, second_buckets());
  std::map<std::string, Histogram*, std::less<>> waits_of;  // by principal; not changed after set-up
  // By direction and transport; likewise.
  std::map<std::pair<std::string_view, std::string_view>, Counter*> moved_of;
  std::mutex mutex;
  std::map<std::string, Method, std::less<>> methods;

  std::pair<Counter*, Histogram*> of_call(const std::string& name, absl::StatusCode code) {
    const std::lock_guard lock(mutex);
    Method& method = methods[name];
    if (method.duration == nullptr) method.duration = &durations->Add({{"method", name}}, second_buckets());
    Counter*& counter = method.handled[code];
    if (counter == nullptr) counter = &handled->Add({{"method", name}, {"code", code_name(code)}});
    return {counter, method.duration};
  }

  Histogram& waits_for(std::string_view principal) {
    const auto found = waits_of.find(principal);
    return *(found != waits_of.end() ? found : waits_of.find(kOtherPrincipals))->second;
  }
};

Telemetry::Telemetry(const std::set<std::string>& principals) : families_(std::make_unique<Families>()) {
  const auto add = [&](const std::string& name) {
    families_->waits_of.emplace(name, &families_->waits->Add({{"principal", name}}, second_buckets()));
  };
  add(kOtherPrincipals);
  for (const std::string& name : principals) {
    if (families_->waits_of.size() > kMaxPrincipals) break;
    add(name);
  }
  // From 0 on, so that rates see the first of each.
  for (const char* reason : {"QUEUE_FULL", "NO_MEMORY_NOW", "LIMIT_EXCEEDED", "DRAINING", "DEVICE_FAULT"})
    families_->rejections.of(reason);
  for (const char* reason : {"INVALID_FIELD", "LIMIT_EXCEEDED"}) families_->decode_refusals.of(reason);
  for (const char* direction : {"upload", "download"}) {
    for (const char* transport : {"tcp", "unix", "shared"}) {
      families_->moved_of[{direction, transport}] =
          &families_->moved->Add({{"direction", direction}, {"transport", transport}});
    }
  }
}

Telemetry::~Telemetry() = default;

void Telemetry::finished(const CallRecord& call) {
  log_call(call);
  count(call);
}

void Telemetry::count(const CallRecord& call) {
  const auto [counter, duration] = families_->of_call(call.method, call.status.code());
  counter->Increment();
  duration->Observe(call.seconds);
  if (call.ran) {
    families_->waits_for(call.principal).Observe(call.queue_seconds);
    families_->input->Observe(call.input_seconds);
    families_->compute->Observe(call.compute_seconds);
    families_->output->Observe(call.output_seconds);
  }
  if (const std::string_view direction = direction_of(call.method); !direction.empty()) {
    families_->moved_of.at({direction, transport_of(call)})->Increment(static_cast<double>(call.bytes));
  }
  if (call.status.ok()) return;
  families_->rejections.of(reason_of(call.status)).Increment();
  keep_error(call);
}

void Telemetry::refused(std::string_view method, std::string client, const absl::Status& why) {
  CallRecord call;
  call.method = std::string(method);
  call.client = std::move(client);
  call.status = why;
  finished(call);
}

void Telemetry::decode_refused(const absl::Status& status) {
  families_->decode_refusals.of(reason_of(status)).Increment();
}

void Telemetry::keep_error(const CallRecord& call) {
  // Not the status itself: its text is shared with the call, which reads it on.
  RecentError error{steady_now(),
                    call.method,
                    call.request_id,
                    call.principal,
                    call.trace.trace_id,
                    call.status.code(),
                    std::string(call.status.message())};
  const std::lock_guard lock(errors_mutex_);
  errors_.push_front(std::move(error));
  if (errors_.size() > kRecentErrors) errors_.pop_back();
}

std::vector<Telemetry::RecentError> Telemetry::recent_errors() const {
  const std::lock_guard lock(errors_mutex_);
  return {errors_.begin(), errors_.end()};
}

std::string Telemetry::text(const prometheus::Collectable* more) const {
  std::vector<prometheus::MetricFamily> families = families_->registry.Collect();
  if (more != nullptr) {
    std::vector<prometheus::MetricFamily> others = more->Collect();
    std::move(others.begin(), others.end(), std::back_inserter(families));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace cumulus::server
