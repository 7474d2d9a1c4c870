#pragma once

#include <absl/status/statusor.h>

#include <concepts>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/pipeline/operation.h"
#include "server/pipeline/plan_key.h"
#include "server/runtime/device.h"

namespace cumulus::server {

/// A plan and what follows from it. Thread-safe: calls of the same shape share it.
template <Operation Op>
class Planned {
 public:
  explicit Planned(typename Op::Plan the_plan)
      : plan(std::move(the_plan)), outputs(Op::outputs(plan)), cost(Op::cost(plan)) {}

  std::size_t scratch_bytes(const Device& device) const {
    return device.space() == Space::kHost ? scratch_in<Space::kHost>(device.numbers())
                                          : scratch_in<Space::kDevice>(device.numbers());
  }

  const typename Op::Plan plan;
  const std::vector<OutputSpec> outputs;
  const Cost cost;

 private:
  struct Scratch {
    Space space;
    DeviceNumbers device;
    std::size_t bytes;
  };

  static bool same(const DeviceNumbers& a, const DeviceNumbers& b) {
    return a.architecture == b.architecture && a.multiprocessors == b.multiprocessors &&
           a.multiprocessor_threads == b.multiprocessor_threads &&
           a.multiprocessor_shared_bytes == b.multiprocessor_shared_bytes &&
           a.block_shared_bytes == b.block_shared_bytes && a.l2_bytes == b.l2_bytes;
  }
  template <Space S>
  std::size_t scratch_in(const DeviceNumbers& device) const {
    {
      const std::lock_guard lock(mutex_);
      if (last_ && last_->space == S && same(last_->device, device)) return last_->bytes;
    }
    std::size_t bytes = 0;
    if constexpr (ChoosesByDevice<Op>) {
      bytes = Op::template scratch_bytes<S>(plan, device);
    } else {
      bytes = Op::template scratch_bytes<S>(plan);
    }
    const std::lock_guard lock(mutex_);
    last_ = Scratch{S, device, bytes};
    return bytes;
  }

  mutable std::mutex mutex_;
  mutable std::optional<Scratch> last_;  // of the device that asked last
};

/// Plans of one operation by their keys, the latest kMaxPlans. Thread-safe.
template <Operation Op>
class KeptPlans {
 public:
  static constexpr std::size_t kMaxPlans = 64;

  /// Null where there is none.
  std::shared_ptr<const Planned<Op>> find(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = plans_.find(key);
    return found != plans_.end() ? found->second : nullptr;
  }
  void keep(const std::string& key, const std::shared_ptr<const Planned<Op>>& planned) {
    const std::lock_guard lock(mutex_);
    if (!plans_.emplace(key, planned).second) return;
    order_.push_back(key);
    if (order_.size() <= kMaxPlans) return;
    plans_.erase(order_.front());
    order_.pop_front();
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Planned<Op>>> plans_;
  std::deque<std::string> order_;  // the oldest first
};

/// An operation whose plans take longer to make than to find, and follow from plan_key alone: `validate`
/// looks at no input's head.
template <class Op>
concept KeepsPlans = requires {
  { Op::kKeepsPlans } -> std::convertible_to<bool>;
  requires Op::kKeepsPlans;
};

template <Operation Op>
absl::StatusOr<std::shared_ptr<const Planned<Op>>> make_planned(const typename Op::Request& request,
                                                                std::span<const InputArray> inputs) {
  absl::StatusOr<typename Op::Plan> plan = Op::validate(request, inputs);
  if (!plan.ok()) return plan.status();
  return std::make_shared<const Planned<Op>>(*std::move(plan));
}

/// The plan of a request: one that is kept, where the same came before.
template <Operation Op>
absl::StatusOr<std::shared_ptr<const Planned<Op>>> plan_of(const typename Op::Request& request,
                                                           std::span<const InputArray> inputs) {
  if constexpr (KeepsPlans<Op>) {
    static KeptPlans<Op> kept;
    const std::string key = plan_key(request, inputs);
    if (std::shared_ptr<const Planned<Op>> planned = kept.find(key); planned != nullptr) return planned;
    auto planned = make_planned<Op>(request, inputs);
    if (planned.ok() && !key.empty()) kept.keep(key, *planned);
    return planned;
  } else {
    return make_planned<Op>(request, inputs);
  }
}

}  // namespace cumulus::server
