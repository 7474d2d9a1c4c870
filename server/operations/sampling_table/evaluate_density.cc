#include "server/operations/sampling_table/evaluate_density.h"

#include "server/operations/sampling_table/table.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {
namespace {

absl::Status read_points(const InputArray& points, EvaluateDensity::Plan& plan) {
  const auto& extents = points.shape.extents;
  const bool sphere = sampling::on_sphere(plan.header.projection);
  const bool list = points.shape.type == v1::FLOAT32 && extents.size() == 2 && extents[0] >= 1;
  if (!list || (extents[1] != 2 && !(extents[1] == 3 && sphere))) {
    return bad_field(points.field, concat("is ", points.shape.text(), "; FLOAT32 [count, 2], positions, ",
                                          sphere ? "or [count, 3], directions, is right"
                                                 : "is right (a plane has no directions)"));
  }
  plan.count = extents[0];
  plan.dimensions = static_cast<int>(extents[1]);
  return absl::OkStatus();
}

}  // namespace

std::vector<SourceField> EvaluateDensity::sources(const Request& request) {
  return {{"table", &request.table()}, {"points", &request.points()}};
}

absl::StatusOr<EvaluateDensity::Plan> EvaluateDensity::validate(const Request& request,
                                                                std::span<const InputArray> inputs) {
  Plan plan;
  plan.layer = request.layer();
  absl::Status status = read_table_header(inputs[0], plan.header);
  if (status.ok()) status = check_layer(request.layer(), plan.header);
  if (status.ok()) status = read_points(inputs[1], plan);
  if (!status.ok()) return status;
  return plan;
}

std::vector<OutputSpec> EvaluateDensity::outputs(const Plan& plan) {
  return {{"pdf", {v1::FLOAT32, {plan.count}}}};
}

Cost EvaluateDensity::cost(const Plan& plan) {
  constexpr double kCoreSeconds = 30e-9;  // a point
  constexpr double kGpuSeconds = 0.1e-9;
  const double points = static_cast<double>(plan.count);
  return {points * kCoreSeconds, points * kGpuSeconds};
}

template <class E>
void EvaluateDensity::run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                          const Outputs<E::kSpace>& outputs, Report& /*report*/) {
  const DensityPoints<E::kSpace> points{inputs.template as<const float>(1), plan.dimensions, plan.layer};
  evaluate_density(executor, plan.header, inputs.template as<const std::byte>(0), points,
                   outputs.template as<float>(0));
}

template void EvaluateDensity::run(CpuExecutor&, const Plan&, const Inputs<Space::kHost>&,
                                   const Outputs<Space::kHost>&, Report&);
#if CUMULUS_WITH_CUDA
template void EvaluateDensity::run(CudaExecutor&, const Plan&, const Inputs<Space::kDevice>&,
                                   const Outputs<Space::kDevice>&, Report&);
#endif

}  // namespace cumulus::server::ops
