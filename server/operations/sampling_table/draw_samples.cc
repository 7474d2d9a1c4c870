#include "server/operations/sampling_table/draw_samples.h"

#include "server/operations/sampling_table/table.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/read_enum.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {
namespace {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 31;
constexpr std::int64_t kMaxTotal = std::int64_t{1} << 32;

absl::Status read_range(const DrawSamples::Request& request, DrawParameters& draw) {
  if (request.count() < 1 || request.count() > kMaxCount) {
    return bad_field("count", concat("is ", request.count(), "; 1 to 2^31 is right"));
  }
  if (request.first_index() < 0 || request.first_index() > kMaxTotal - request.count()) {
    return bad_field("first_index", concat("is ", request.first_index(),
                                           "; at least 0, and first_index + count at most 2^32, is right"));
  }
  const std::int64_t end = request.first_index() + request.count();
  if (request.total() != 0 && (request.total() < end || request.total() > kMaxTotal)) {
    return bad_field(
        "total", concat("is ", request.total(), "; 0, or first_index + count (", end, ") to 2^32, is right"));
  }
  draw.count = request.count();
  draw.first_index = request.first_index();
  draw.total = request.total();
  return absl::OkStatus();
}

absl::Status read_sequence(const DrawSamples::Request& request, DrawParameters& draw) {
  const auto sequence = read_enum<PointSequence>("sequence", request.sequence(),
                                                 {{v1::SEQUENCE_UNSPECIFIED, PointSequence::kSobol},
                                                  {v1::SOBOL, PointSequence::kSobol},
                                                  {v1::HAMMERSLEY, PointSequence::kHammersley},
                                                  {v1::RANDOM, PointSequence::kRandom}});
  if (!sequence.ok()) return sequence.status();
  draw.sequence = *sequence;
  draw.seed = request.seed();
  return absl::OkStatus();
}

}  // namespace

std::vector<SourceField> DrawSamples::sources(const Request& request) {
  return {{"table", &request.table()}};
}

absl::StatusOr<DrawSamples::Plan> DrawSamples::validate(const Request& request,
                                                        std::span<const InputArray> inputs) {
  Plan plan;
  plan.draw.layer = request.layer();
  absl::Status status = read_table_header(inputs[0], plan.header);
  if (status.ok()) status = check_layer(request.layer(), plan.header);
  if (status.ok()) status = read_range(request, plan.draw);
  if (status.ok()) status = read_sequence(request, plan.draw);
  if (!status.ok()) return status;
  return plan;
}

std::vector<OutputSpec> DrawSamples::outputs(const Plan& plan) {
  const std::int64_t count = plan.draw.count;
  std::vector<OutputSpec> specs = {{"position", {v1::FLOAT32, {count, 2}}}, {"pdf", {v1::FLOAT32, {count}}}};
  if (plan.has_direction()) specs.push_back({"direction", {v1::FLOAT32, {count, 3}}});
  return specs;
}

Cost DrawSamples::cost(const Plan& plan) {
  constexpr double kCoreSeconds = 80e-9;  // a sample
  constexpr double kGpuSeconds = 0.2e-9;
  const auto samples = static_cast<double>(plan.draw.count);
  return {samples * kCoreSeconds, samples * kGpuSeconds};
}

template <class E>
void DrawSamples::run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                      const Outputs<E::kSpace>& outputs, Report& /*report*/) {
  DrawnSamples<E::kSpace> samples;
  samples.position = outputs.template as<float>(0);
  samples.pdf = outputs.template as<float>(1);
  if (plan.has_direction()) samples.direction = outputs.template as<float>(2);
  draw_samples(executor, plan.header, inputs.template as<const std::byte>(0), plan.draw, samples);
}

template void DrawSamples::run(CpuExecutor&, const Plan&, const Inputs<Space::kHost>&,
                               const Outputs<Space::kHost>&, Report&);
#if CUMULUS_WITH_CUDA
template void DrawSamples::run(CudaExecutor&, const Plan&, const Inputs<Space::kDevice>&,
                               const Outputs<Space::kDevice>&, Report&);
#endif

}  // namespace cumulus::server::ops
