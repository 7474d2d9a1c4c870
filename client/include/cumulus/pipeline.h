#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cumulus/operation.h"

namespace cumulus {

/// A step of a Pipeline, by which later ones name what it makes.
class PipelineStep {
 public:
  /// The array that the operation's documentation calls `array`: a Source of later steps of the same
  /// pipeline, and of nothing else.
  StepOutput operator[](std::string array) const { return {place_, std::move(array)}; }

 private:
  friend class Pipeline;
  explicit PipelineStep(int place) : place_(place) {}
  int place_;
};

/// Several operations that run as one: checked, admitted and queued once, and what one makes for another is
/// never a buffer. Its results are bit for bit those of separate calls.
///
///   Pipeline pipeline;
///   const auto blur = pipeline.add(apply_recursive_filter(map, {.x = AxisKernel{GaussianKernel{5}}}));
///   const auto build = pipeline.add(build_sampling_table(blur["image"]));
///   const auto draw = pipeline.add(draw_samples(build["table"], {.count = 1024}));
///   pipeline.keep(build["table"]);
///   pipeline.keep(draw["position"], "samples");
///   absl::StatusOr<Result> result = session.run(pipeline);
///
/// Any operation but those of run lengths and of neighbours, whose results' sizes are known only after their
/// runs; at most 64 steps, of which at most 16 arrays are kept. A mistake is answered by the run, with the
/// place of its step: field_violations names steps[2].filter_box.radius, and error_metadata of a step without
/// an answer has its number as `step`. Movable; to be filled by one thread.
class Pipeline {
 public:
  Pipeline();
  ~Pipeline();
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;

  /// Puts `operation`, which is no pipeline itself, behind the others.
  PipelineStep add(const Operation& operation);
  /// Puts the array into the result, as `name`; empty: as the operation calls it. Each array once, each name
  /// once; what is not kept is gone after the run.
  void keep(const StepOutput& output, const std::string& name = "");

  /// The pipeline as it is now, to run as any operation.
  operator Operation() const;  // NOLINT(google-explicit-constructor)

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cumulus
