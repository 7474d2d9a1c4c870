#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "kernels/core/launch_slices.h"
#include "kernels/sampling_table/bilinear/vertices.h"
#include "kernels/sampling_table/build.h"
#include "kernels/sampling_table/check.h"
#include "kernels/sampling_table/draw/draw.h"
#include "kernels/sampling_table/format/conclude.h"
#include "kernels/sampling_table/search/lookup.h"
#include "kernels/sampling_table/weights/reduction.h"

namespace cumulus::sampling_table {
namespace {

template <class T>
void build_all_rows(CudaExecutor& executor, const RowPlan& plan, const RowsArguments<T>& arguments) {
  std::visit(
      [&]<class Plan>(const Plan& of_method) {
        if constexpr (std::is_same_v<T, CellWeight> && std::is_same_v<Plan, RegisterBlockedPlan>) {
          throw std::logic_error("rows of a bilinear table are never register-blocked");
        } else {
          build_rows(executor, of_method, arguments);
        }
        write_lookup(executor, {arguments.header, arguments.table, false}, of_method.writes_guides());
      },
      plan);
}

/// The vertices, then the rows of the cells between them.
template <class T>
void build_all_bilinear_rows(CudaExecutor& executor, const RowPlan& plan, const RowsArguments<T>& map) {
  const sampling::TableHeader& header = map.header;
  write_vertices_and_cells<T>(executor, {map.weights, map.rule, header, vertex_rule(header), map.table,
                                         map.adjustments, map.findings});
  executor.check_interrupt();
  const auto* cells = reinterpret_cast<const CellWeight*>(map.table + header.row_cdf_offset);
  const DeviceImage<const CellWeight> image(cells, std::int64_t{header.layers} * header.height, header.width);
  build_all_rows<CellWeight>(
      executor, plan, {image, weight_rule({}, 1), header, map.table, map.row_masses, nullptr, map.findings});
}

/// Findings and masses of rows in scratch memory; neither any finding nor any mass yet.
struct BuildRecords {
  BuildFindings* findings;
  DeviceSpan<RowMass> row_masses;
};
BuildRecords take_records(CudaExecutor& executor, std::size_t rows) {
  const BuildRecords records{executor.scratch<BuildFindings>(1).data(), executor.scratch<RowMass>(rows)};
  const auto* const begin = reinterpret_cast<const std::byte*>(records.findings);
  const auto* const end = reinterpret_cast<const std::byte*>(records.row_masses.data() + rows);
  CUMULUS_CUDA(
      cudaMemsetAsync(records.findings, 0xFF, static_cast<std::size_t>(end - begin), executor.stream()));
  return records;
}

/// One a layer.
template <class T>
const WeightAdjustment* find_adjustments(CudaExecutor& executor, DeviceImage<const T> weights,
                                         const SamplingTableParams& params) {
  const auto rows = executor.scratch<RowReduction>(static_cast<std::size_t>(params.layers * params.height));
  const auto adjustments = executor.scratch<WeightAdjustment>(static_cast<std::size_t>(params.layers));
  reduce_weights(executor, weights, params, rows, adjustments);
  executor.check_interrupt();
  return adjustments.data();
}

template <class T>
void build(CudaExecutor& executor, DeviceImage<const T> weights, const SamplingTableParams& params,
           DeviceSpan<std::byte> table, SamplingTableReport* report) {
  check_build(weights, params, table);
  const BuildPlan plan = choose(params, executor.device().numbers());
  build_by(executor, plan, weights, params, table, report);
}

template <class Points>
void draw(CudaExecutor& executor, const sampling::TableView& table, const Points& points, std::int64_t count,
          const SampleArrays& arrays) {
  executor.bind_thread();
  launch_slices(executor, count, {.first = kFirstSamples, .most = kMaxSamples},
                [&](std::int64_t begin, std::int64_t end) {
                  const auto samples = static_cast<std::uint32_t>(end - begin);
                  const DrawPlan plan = choose(DrawJob{table.header, samples, arrays.direction != nullptr},
                                               executor.device().numbers());
                  draw_by<Points>(executor, plan, {table, points.from(begin), samples, arrays.from(begin)});
                });
}

}  // namespace

template <class T>
void build_by(CudaExecutor& executor, const BuildPlan& plan, DeviceImage<const T> weights,
              const SamplingTableParams& params, DeviceSpan<std::byte> table, SamplingTableReport* report) {
  executor.bind_thread();
  const sampling::TableHeader header = sampling_table_header(params);
  const BuildRecords records = take_records(executor, std::size_t{header.layers} * header.height);
  const WeightAdjustment* adjustments = plan.reduces ? find_adjustments(executor, weights, params) : nullptr;
  const RowsArguments<T> arguments{weights,
                                   weight_rule(params, weights.channels),
                                   header,
                                   table.data(),
                                   records.row_masses.data(),
                                   adjustments,
                                   records.findings};
  if (plan.writes_vertices) {
    build_all_bilinear_rows(executor, plan.rows, arguments);
  } else {
    build_all_rows(executor, plan.rows, arguments);
  }
  executor.check_interrupt();
  std::visit(
      [&](const auto& of_method) {
        build_marginals(
            executor, of_method,
            {header, table.data(), records.row_masses.data(), records.findings, plan.early_marginals});
        write_lookup(executor, {header, table.data(), true}, of_method.writes_guides());
      },
      plan.marginals);
  conclude(executor, arguments, static_cast<std::uint32_t>(params.height));
  executor.download({reinterpret_cast<const std::byte*>(&records.findings->report), sizeof(*report)},
                    {reinterpret_cast<std::byte*>(report), sizeof(*report)});
}

#define CUMULUS_INSTANTIATE(T)                                                                              \
  template void build_by(CudaExecutor&, const BuildPlan&, DeviceImage<const T>, const SamplingTableParams&, \
                         DeviceSpan<std::byte>, SamplingTableReport*);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(std::uint8_t)
CUMULUS_INSTANTIATE(Float16)
#undef CUMULUS_INSTANTIATE

}  // namespace cumulus::sampling_table

namespace cumulus {

void build_sampling_table(CudaExecutor& executor, DeviceImage<const float> weights,
                          const SamplingTableParams& params, DeviceSpan<std::byte> table,
                          SamplingTableReport* report) {
  sampling_table::build(executor, weights, params, table, report);
}

void build_sampling_table(CudaExecutor& executor, DeviceImage<const std::uint8_t> weights,
                          const SamplingTableParams& params, DeviceSpan<std::byte> table,
                          SamplingTableReport* report) {
  sampling_table::build(executor, weights, params, table, report);
}

void build_sampling_table(CudaExecutor& executor, DeviceImage<const Float16> weights,
                          const SamplingTableParams& params, DeviceSpan<std::byte> table,
                          SamplingTableReport* report) {
  sampling_table::build(executor, weights, params, table, report);
}

void draw_samples(CudaExecutor& executor, const sampling::TableHeader& header,
                  DeviceSpan<const std::byte> table, const DrawParameters& parameters,
                  DrawnSamples<Space::kDevice> samples) {
  using namespace sampling_table;
  check_draw(header, table, parameters, samples);
  draw(executor, view_of(header, table, parameters.layer), PointSource(parameters), parameters.count,
       sample_arrays(samples));
}

void sample_points(CudaExecutor& executor, const sampling::TableHeader& header,
                   DeviceSpan<const std::byte> table, DeviceSpan<const sampling::FixedPoint2> points,
                   std::uint32_t layer, DrawnSamples<Space::kDevice> samples) {
  using namespace sampling_table;
  check_points(header, table, points.size(), layer, samples);
  draw(executor, view_of(header, table, layer), GivenPoints{points.data()},
       static_cast<std::int64_t>(points.size()), sample_arrays(samples));
}

void evaluate_density(CudaExecutor& executor, const sampling::TableHeader& header,
                      DeviceSpan<const std::byte> table, DensityPoints<Space::kDevice> points,
                      DeviceSpan<float> pdf) {
  using namespace sampling_table;
  check_density(header, table, points, pdf);
  if (pdf.empty()) return;
  executor.bind_thread();
  evaluate(executor, view_of(header, table, points.layer), points.coordinates.data(), points.dimensions, pdf);
}

}  // namespace cumulus
