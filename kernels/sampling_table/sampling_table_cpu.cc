#include <algorithm>
#include <atomic>

#include "kernels/core/parallel.h"
#include "kernels/core/without_cuda.h"
#include "kernels/sampling_table/check.h"
#include "kernels/sampling_table/cpu/long_rows.h"
#include "kernels/sampling_table/cpu/lookup.h"
#include "kernels/sampling_table/cpu/reduction.h"
#include "kernels/sampling_table/cpu/row_build.h"
#include "kernels/sampling_table/cpu/vertices.h"
#include "kernels/sampling_table/draw/points.h"
#include "kernels/sampling_table/format/gaps.h"
#include "kernels/sampling_table/format/target.h"
#include "kernels/sampling_table/sampling_table.h"
#include "kernels/sampling_table/tuning.h"
#include "kernels/sampling_table/weights/arithmetic.h"

namespace cumulus::sampling_table {
namespace {

/// Turns masses into lower bounds. `mass_at(i)` may read lower[i], which is written after it.
template <class MassAt>
Tally write_lower_bounds(std::uint32_t count, const MassAt& mass_at, std::uint32_t* lower) {
  Tally all;
  for (std::uint32_t i = 0; i < count; ++i) all.add(mass_at(i));
  const BoundScale scale(all);
  Tally before;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t mass = mass_at(i);
    lower[i] = scale.lower_bound(before);
    before.add(mass);
  }
  return all;
}

template <class Key>
void note_earlier(Key& first, Key found) {
  std::atomic_ref<Key> shared(first);
  Key earliest = shared.load();
  while (found < earliest && !shared.compare_exchange_weak(earliest, found)) {
  }
}

template <class T>
struct BuildArguments {
  HostImage<const T> weights;
  WeightRule rule;
  sampling::TableHeader header;
  HostSpan<std::byte> table;
  HostSpan<RowMass> row_masses;
  HostSpan<const WeightAdjustment> adjustments;  // one a layer, or none
  BuildFindings& findings;

  WeightAdjustment adjustment(std::uint32_t layer) const {
    return adjustments.empty() ? WeightAdjustment{} : adjustments[layer];
  }
  void note_invalid(std::uint32_t x, std::uint32_t row, const T* texel) const {
    note_earlier(findings.first_invalid, invalid_key(x, row, static_cast<std::uint32_t>(weights.width),
                                                     first_invalid_channel(texel, rule.counted)));
  }
};

/// The rows of all layers in parallel, then the marginals.
template <class T>
class TableBuilder {
 public:
  /// The weights are those of the table's cells.
  explicit TableBuilder(const BuildArguments<T>& arguments) : arguments_(arguments) {}

  void build(CpuExecutor& executor) {
    build_rows(executor);
    executor.check_interrupt();
    parallel_ranges(executor, arguments_.header.layers, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t layer = first; layer < last; ++layer)
        build_marginal(static_cast<std::uint32_t>(layer));
    });
  }

 private:
  /// Of all layers.
  void build_rows(CpuExecutor& executor) {
    const std::int64_t rows = std::int64_t{arguments_.header.layers} * arguments_.header.height;
    const auto begin = [this](std::uint32_t row) { return begin_row(row); };
    const auto conclude = [this](std::uint32_t row, const RowBuild<T>& build) { conclude_row(row, build); };
    if (arguments_.header.width >= kLongRowCells) {
      return run_long_rows<RowBuild<T>>(executor, rows, begin, conclude);
    }
    const std::int64_t grain = std::max<std::int64_t>(1, kTexelsPerTask / arguments_.header.width);
    parallel_ranges(executor, rows, grain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const auto row = static_cast<std::uint32_t>(i);
        RowBuild<T> build = begin_row(row);
        build.run(nullptr);
        conclude_row(row, build);
      }
    });
  }

  /// `row` counts through all layers.
  RowBuild<T> begin_row(std::uint32_t row) const {
    const HostImage<const T>& weights = arguments_.weights;
    const RowWeights<T> of_row{weights.row(row), weights.channels, arguments_.rule,
                               arguments_.adjustment(row / arguments_.header.height)};
    return RowBuild<T>(of_row, row_target(arguments_.header, arguments_.table.data(), row));
  }
  void conclude_row(std::uint32_t row, const RowBuild<T>& build) const {
    if (build.extremes().guard >= kInfinityBits) note_first_invalid(row);
    const float share = row_weight(arguments_.header, row % arguments_.header.height);
    arguments_.row_masses[row] = {row_mass(build.tally().sum, share), build.exponent(), 0};
  }

  void build_marginal(std::uint32_t layer) {
    const std::size_t first = std::size_t{layer} * arguments_.header.height;
    const HostSpan<RowMass> rows = arguments_.row_masses.subspan(first, arguments_.header.height);
    std::uint32_t heaviest = 0;
    for (const RowMass& row : rows) heaviest = std::max(heaviest, mass_exponent(row.mass, row.exponent));
    const auto mass_at = [&](std::uint32_t y) {
      return integer_mass(rows[y].mass, rows[y].exponent, heaviest);
    };
    const Target target = marginal_target(arguments_.header, arguments_.table.data(), layer);
    const Tally all = write_lower_bounds(arguments_.header.height, mass_at, target.lower);
    write_lookup(target);
    if (all.positive == 0) note_earlier(arguments_.findings.first_empty, layer);
  }

  void note_first_invalid(std::uint32_t row) const {
    const T* texel = arguments_.weights.row(row);
    std::uint32_t x = 0;
    for (; load_weight(texel, arguments_.rule).guard < kInfinityBits; ++x)
      texel += arguments_.weights.channels;
    arguments_.note_invalid(x, row, texel);
  }

  BuildArguments<T> arguments_;
};

/// The vertices and cells of a bilinear table, and what is invalid in layers of `height` rows.
template <class T>
void write_bilinear(CpuExecutor& executor, const BuildArguments<T>& map, std::int64_t height) {
  const auto weight_at = [&](std::uint32_t layer, std::uint32_t x, std::uint32_t y) {
    const auto row = static_cast<std::uint32_t>(layer * height + y);
    const T* texel = map.weights.row(row) + x * map.weights.channels;
    const Weight weight = load_weight(texel, map.rule);
    if (weight.guard >= kInfinityBits) map.note_invalid(x, row, texel);
    return CellWeight{adjusted(weight.bits, map.adjustment(layer))};
  };
  write_vertices_and_cells(executor, map.header, map.table, weight_at);
}

void write_header_and_padding(const sampling::TableHeader& header, HostSpan<std::byte> table) {
  std::memcpy(table.data(), &header, sizeof(header));
  for (const auto& gap : table_gaps(header).gaps)
    std::memset(table.data() + gap.begin, 0, gap.end - gap.begin);
}

template <class T>
void build(CpuExecutor& executor, HostImage<const T> weights, const SamplingTableParams& params,
           HostSpan<std::byte> table, SamplingTableReport* report) {
  check_build(weights, params, table);
  const sampling::TableHeader header = sampling_table_header(params);
  const auto row_masses = executor.scratch<RowMass>(std::size_t{header.layers} * header.height);
  BuildFindings& findings = executor.scratch<BuildFindings>(1)[0];
  findings = {kNoneInvalid, kNoneEmpty, {}};
  HostSpan<WeightAdjustment> adjustments;
  if (params.needs_reduction()) {
    const auto reductions =
        executor.scratch<RowReduction>(static_cast<std::size_t>(params.layers * params.height));
    adjustments = executor.scratch<WeightAdjustment>(static_cast<std::size_t>(params.layers));
    reduce_weights(executor, weights, params, reductions, adjustments);
  }
  const WeightRule rule = weight_rule(params, weights.channels);
  const BuildArguments<T> arguments{weights, rule, header, table, row_masses, adjustments, findings};
  if (params.interpolation == sampling::Interpolation::kBilinear) {
    write_bilinear(executor, arguments, params.height);
    const auto* cells = reinterpret_cast<const CellWeight*>(table.data() + header.row_cdf_offset);
    const HostImage<const CellWeight> image(cells, std::int64_t{header.layers} * header.height, header.width);
    TableBuilder<CellWeight>({image, weight_rule({}, 1), header, table, row_masses, {}, findings})
        .build(executor);
  } else {
    TableBuilder<T>(arguments).build(executor);
  }
  write_header_and_padding(header, table);
  *report = report_of(findings, weights, static_cast<std::uint32_t>(params.height));
}

template <class Points>
void draw(CpuExecutor& executor, const sampling::TableView& table, const Points& points, std::int64_t count,
          const SampleArrays& arrays) {
  parallel_ranges(executor, count, kSamplesPerTask, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const sampling::FixedPoint2 point = points.point(i);
      store_sample(sampling::sample(table, point.x, point.y), i, arrays);
    }
  });
}

}  // namespace
}  // namespace cumulus::sampling_table

namespace cumulus {

void build_sampling_table(CpuExecutor& executor, HostImage<const float> weights,
                          const SamplingTableParams& params, HostSpan<std::byte> table,
                          SamplingTableReport* report) {
  sampling_table::build(executor, weights, params, table, report);
}

void build_sampling_table(CpuExecutor& executor, HostImage<const std::uint8_t> weights,
                          const SamplingTableParams& params, HostSpan<std::byte> table,
                          SamplingTableReport* report) {
  sampling_table::build(executor, weights, params, table, report);
}

void build_sampling_table(CpuExecutor& executor, HostImage<const Float16> weights,
                          const SamplingTableParams& params, HostSpan<std::byte> table,
                          SamplingTableReport* report) {
  sampling_table::build(executor, weights, params, table, report);
}

void draw_samples(CpuExecutor& executor, const sampling::TableHeader& header, HostSpan<const std::byte> table,
                  const DrawParameters& parameters, DrawnSamples<Space::kHost> samples) {
  using namespace sampling_table;
  check_draw(header, table, parameters, samples);
  draw(executor, view_of(header, table, parameters.layer), PointSource(parameters), parameters.count,
       sample_arrays(samples));
}

void sample_points(CpuExecutor& executor, const sampling::TableHeader& header,
                   HostSpan<const std::byte> table, HostSpan<const sampling::FixedPoint2> points,
                   std::uint32_t layer, DrawnSamples<Space::kHost> samples) {
  using namespace sampling_table;
  check_points(header, table, points.size(), layer, samples);
  draw(executor, view_of(header, table, layer), GivenPoints{points.data()},
       static_cast<std::int64_t>(points.size()), sample_arrays(samples));
}

void evaluate_density(CpuExecutor& executor, const sampling::TableHeader& header,
                      HostSpan<const std::byte> table, DensityPoints<Space::kHost> points,
                      HostSpan<float> pdf) {
  using namespace sampling_table;
  check_density(header, table, points, pdf);
  const sampling::TableView view = view_of(header, table, points.layer);
  parallel_ranges(executor, static_cast<std::int64_t>(pdf.size()), kSamplesPerTask,
                  [&](std::int64_t first, std::int64_t last) {
                    for (std::int64_t i = first; i < last; ++i) {
                      pdf.data()[i] = density_at(view, points.coordinates.data(), points.dimensions, i);
                    }
                  });
}

#if !CUMULUS_WITH_CUDA
#define CUMULUS_BUILD(T)                                                                            \
  void CUMULUS_WITHOUT_CUDA(build_sampling_table, DeviceImage<const T>, const SamplingTableParams&, \
                            DeviceSpan<std::byte>, SamplingTableReport*);
CUMULUS_BUILD(float)
CUMULUS_BUILD(std::uint8_t)
CUMULUS_BUILD(Float16)
void CUMULUS_WITHOUT_CUDA(draw_samples, const sampling::TableHeader&, DeviceSpan<const std::byte>,
                          const DrawParameters&, DrawnSamples<Space::kDevice>);
void CUMULUS_WITHOUT_CUDA(sample_points, const sampling::TableHeader&, DeviceSpan<const std::byte>,
                          DeviceSpan<const sampling::FixedPoint2>, std::uint32_t,
                          DrawnSamples<Space::kDevice>);
void CUMULUS_WITHOUT_CUDA(evaluate_density, const sampling::TableHeader&, DeviceSpan<const std::byte>,
                          DensityPoints<Space::kDevice>, DeviceSpan<float>);
#endif

}  // namespace cumulus
