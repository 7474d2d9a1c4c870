#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cumulus/v1/array.pb.h"
#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"
#include "server/runtime/array_spec.h"

namespace cumulus::server {

/// A field of a request that names an input.
struct SourceField {
  std::string_view field;  // its path, for errors: "image"
  const v1::Source* source;
};

/// What is known of an input before anything runs.
struct InputArray {
  std::string_view field;
  ArrayShape shape;
  std::span<const std::byte> head;  // its first bytes: kHeadBytes, or all if it is shorter
};

struct OutputSpec {
  std::string name;
  ArrayShape shape;
  /// Its first bytes, where the plan says them and operations that take such an array read them in
  /// `validate`.
  std::vector<std::byte> head = {};
  bool kept = true;  // false: for the call's own kernels alone
};

/// The arrays of a call in the memory it runs on, in the order of Op::sources or Op::outputs. Each
/// begins at a multiple of 16 bytes.
template <class Byte, Space S>
class Arrays {
 public:
  explicit Arrays(std::vector<Span<Byte, S>> arrays) : arrays_(std::move(arrays)) {}

  template <class T>
  Span<T, S> as(std::size_t index) const {
    const Span<Byte, S>& bytes = arrays_[index];
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

 private:
  std::vector<Span<Byte, S>> arrays_;
};
template <Space S>
using Inputs = Arrays<const std::byte, S>;
template <Space S>
using Outputs = Arrays<std::byte, S>;

/// For operations whose kernels have nothing to report.
struct NoReport {};

/// What a plan's kernels are predicted to take, before a device's own history corrects it.
struct Cost {
  double core_seconds = 0;  // of one core; the CPU backend spreads them over its threads
  double gpu_seconds = 0;   // of an H100
};

template <class Op>
concept ChoosesByDevice = requires(const typename Op::Plan& plan, const DeviceNumbers& device) {
  { Op::template scratch_bytes<Space::kHost>(plan, device) } -> std::same_as<std::size_t>;
  { Op::template scratch_bytes<Space::kDevice>(plan, device) } -> std::same_as<std::size_t>;
};
template <class Op>
concept HasOneScratchSize = requires(const typename Op::Plan& plan) {
  { Op::template scratch_bytes<Space::kHost>(plan) } -> std::same_as<std::size_t>;
  { Op::template scratch_bytes<Space::kDevice>(plan) } -> std::same_as<std::size_t>;
};
template <class Op, class E>
concept RunsOn = requires(E& executor, const typename Op::Plan& plan, const Inputs<E::kSpace>& inputs,
                          const Outputs<E::kSpace>& outputs, typename Op::Report& report) {
  Op::run(executor, plan, inputs, outputs, report);
};

/// What an operation has to say; everything else about a call is the same for all of them.
///
/// `validate` sees the request and the shapes of its inputs and makes the plan of the run; all that is
/// wrong with a request is found there. `outputs` and `scratch_bytes` follow from the plan, exactly, so that
/// admission can count them before anything runs. `cost` is a closed form in the plan's numbers: queue and
/// fairness count in it, and a device's history corrects it by a factor. `run` puts the work on the executor;
/// it writes every byte of the outputs. `Report` is a small plain struct that the kernels fill (host memory,
/// pinned on a GPU, valid once the work is done); `conclude` turns it into the call's status
/// (FAILED_PRECONDITION, say).
///
/// An operation that chooses its method by what the GPU is has `scratch_bytes<S>(plan, device)` instead, with
/// the DeviceNumbers of the device that the call is for.
///
/// An operation whose results have sizes that are known only after the run has besides
///
///   static std::vector<ArrayShape> final_shapes(const Plan& plan, const Report& report);
///
/// Its `outputs` are then the largest that the results can be, and `run` writes every byte of those parts of
/// them, from their beginnings, that final_shapes names; they are copied into buffers of their own sizes.
template <class Op>
concept Operation = requires(const typename Op::Request& request, std::span<const InputArray> inputs,
                             const typename Op::Plan& plan, const typename Op::Report& report) {
  { Op::kName } -> std::convertible_to<std::string_view>;
  { Op::sources(request) } -> std::same_as<std::vector<SourceField>>;
  { Op::validate(request, inputs) } -> std::same_as<absl::StatusOr<typename Op::Plan>>;
  { Op::outputs(plan) } -> std::same_as<std::vector<OutputSpec>>;
  { Op::cost(plan) } -> std::same_as<Cost>;
  requires HasOneScratchSize<Op> || ChoosesByDevice<Op>;
  requires RunsOn<Op, CpuExecutor>;
  requires RunsOn<Op, CudaExecutor>;
  { Op::conclude(plan, report) } -> std::same_as<absl::Status>;
};

/// True for operations whose outputs are upper bounds.
template <class Op>
concept SizedByItsRun = requires(const typename Op::Plan& plan, const typename Op::Report& report) {
  { Op::final_shapes(plan, report) } -> std::same_as<std::vector<ArrayShape>>;
};

}  // namespace cumulus::server
