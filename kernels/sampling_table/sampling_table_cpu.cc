#include <algorithm>
#include <atomic>

#include "kernels/core/parallel.h"
#include "kernels/sampling_table/sampling_table.h"
#include "kernels/sampling_table/sampling_table_arithmetic.h"
#include "kernels/sampling_table/sampling_table_check.h"
#include "kernels/sampling_table/sampling_table_lookup_cpu.h"
#include "kernels/sampling_table/sampling_table_points.h"
#include "kernels/sampling_table/sampling_table_survey_cpu.h"
#include "kernels/sampling_table/sampling_table_target.h"
#include "kernels/sampling_table/sampling_table_tuning.h"

namespace cumulus {
namespace {

using namespace sampling_arithmetic;

sampling::TableView view_of(const sampling::TableHeader& header, HostSpan<const std::byte> table,
                            std::uint32_t layer) {
  return {header, reinterpret_cast<const unsigned char*>(table.data()), layer};
}

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

/// Calls body(0, count): within a row, whose task runs beside those of other rows.
struct OneAfterAnother {
  template <class Body>
  void operator()(std::uint32_t count, const Body& body) const {
    body(0, count);
  }
};

/// One build: the rows of all layers in parallel, then the marginals.
template <class T>
class TableBuilder {
 public:
  TableBuilder(HostImage<const T> weights, const SamplingTableParams& params, HostSpan<std::byte> table,
               HostSpan<RowMass> row_masses, HostSpan<const WeightAdjustment> adjustments,
               BuildFindings& findings)
      : weights_(weights),
        header_(sampling_table_header(params)),
        table_(table),
        row_masses_(row_masses),
        adjustments_(adjustments),
        findings_(findings),
        rule_(weight_rule(params, weights.channels)) {
    findings_ = {kNoneInvalid, kNoneEmpty, 0, {}};
  }

  /// `row` counts through all layers.
  void build_row(std::uint32_t row) {
    const sampling_layout::Target target = sampling_layout::row_target(header_, table_.data(), row);
    std::uint32_t* cells = target.lower;
    const std::uint32_t exponent = row_exponent(stage_weights(row, cells), header_.width);
    const Tally all = write_lower_bounds(
        header_.width, [&](std::uint32_t x) { return integer_weight(cells[x], exponent); }, cells);
    sampling_lookup::write_lookup(target, OneAfterAnother{});
    row_masses_[row] = {row_mass(all.sum, header_.projection, row % header_.height, header_.height), exponent,
                        0};
  }

  void build_marginal(std::uint32_t layer) {
    const std::size_t first = std::size_t{layer} * header_.height;
    const HostSpan<RowMass> rows = row_masses_.subspan(first, header_.height);
    std::uint32_t heaviest = 0;
    for (const RowMass& row : rows) heaviest = std::max(heaviest, mass_exponent(row.mass, row.exponent));
    const auto mass_at = [&](std::uint32_t y) {
      return integer_mass(rows[y].mass, rows[y].exponent, heaviest);
    };
    const sampling_layout::Target target = sampling_layout::marginal_target(header_, table_.data(), layer);
    const Tally all = write_lower_bounds(header_.height, mass_at, target.lower);
    sampling_lookup::write_lookup(target, OneAfterAnother{});
    if (all.positive == 0) note_earlier(findings_.first_empty, layer);
  }

  SamplingTableReport report() const { return report_of(findings_, weights_, header_.height); }

  void write_header_and_padding() {
    std::memcpy(table_.data(), &header_, sizeof(header_));
    for (const auto& gap : table_gaps(header_).gaps)
      std::memset(table_.data() + gap.begin, 0, gap.end - gap.begin);
  }

 private:
  /// Writes the bits of the row's weights, 0 for invalid ones, and returns the largest.
  std::uint32_t stage_weights(std::uint32_t row, std::uint32_t* cells) {
    const T* texels = weights_.row(row);
    const WeightAdjustment adjustment =
        adjustments_.empty() ? WeightAdjustment{} : adjustments_[row / header_.height];
    std::uint32_t largest = 0;
    std::uint32_t guard = 0;
    for (std::uint32_t x = 0; x < header_.width; ++x) {
      const Weight weight = load_weight(texels + x * weights_.channels, rule_);
      cells[x] = adjusted(weight.bits, adjustment);
      largest = std::max(largest, cells[x]);
      guard = std::max(guard, weight.guard);
    }
    if (guard >= kInfinityBits) note_first_invalid(row);
    return largest;
  }

  void note_first_invalid(std::uint32_t row) {
    const T* texel = weights_.row(row);
    std::uint32_t x = 0;
    for (; load_weight(texel, rule_).guard < kInfinityBits; ++x) texel += weights_.channels;
    note_earlier(findings_.first_invalid,
                 invalid_key(x, row, header_.width, first_invalid_channel(texel, rule_.counted)));
  }

  template <class Key>
  static void note_earlier(Key& first, Key found) {
    std::atomic_ref<Key> shared(first);
    Key earliest = shared.load();
    while (found < earliest && !shared.compare_exchange_weak(earliest, found)) {
    }
  }

  HostImage<const T> weights_;
  sampling::TableHeader header_;
  HostSpan<std::byte> table_;
  HostSpan<RowMass> row_masses_;
  HostSpan<const WeightAdjustment> adjustments_;  // one a layer, or none
  BuildFindings& findings_;
  WeightRule rule_;
};

template <class T>
void build(CpuExecutor& executor, HostImage<const T> weights, const SamplingTableParams& params,
           HostSpan<std::byte> table, SamplingTableReport* report) {
  sampling_check::check_build(weights, params, table);
  const std::int64_t rows = params.layers * params.height;
  const auto row_masses = executor.scratch<RowMass>(static_cast<std::size_t>(rows));
  BuildFindings& findings = executor.scratch<BuildFindings>(1)[0];
  HostSpan<WeightAdjustment> adjustments;
  if (params.needs_survey()) {
    const auto surveys = executor.scratch<RowSurvey>(row_masses.size());
    adjustments = executor.scratch<WeightAdjustment>(static_cast<std::size_t>(params.layers));
    sampling_survey::survey_weights(executor, weights, params, surveys, adjustments);
  }
  TableBuilder<T> builder(weights, params, table, row_masses, adjustments, findings);
  const std::int64_t grain = std::max<std::int64_t>(1, sampling_tuning::kTexelsPerTask / params.width);
  parallel_ranges(executor, rows, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) builder.build_row(static_cast<std::uint32_t>(row));
  });
  executor.check_interrupt();
  parallel_ranges(executor, params.layers, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t layer = first; layer < last; ++layer)
      builder.build_marginal(static_cast<std::uint32_t>(layer));
  });
  builder.write_header_and_padding();
  *report = builder.report();
}

}  // namespace

void build_sampling_table(CpuExecutor& executor, HostImage<const float> weights,
                          const SamplingTableParams& params, HostSpan<std::byte> table,
                          SamplingTableReport* report) {
  build(executor, weights, params, table, report);
}

void build_sampling_table(CpuExecutor& executor, HostImage<const std::uint8_t> weights,
                          const SamplingTableParams& params, HostSpan<std::byte> table,
                          SamplingTableReport* report) {
  build(executor, weights, params, table, report);
}

void build_sampling_table(CpuExecutor& executor, HostImage<const Float16> weights,
                          const SamplingTableParams& params, HostSpan<std::byte> table,
                          SamplingTableReport* report) {
  build(executor, weights, params, table, report);
}

void draw_samples(CpuExecutor& executor, const sampling::TableHeader& header, HostSpan<const std::byte> table,
                  const DrawParameters& parameters, DrawnSamples<Space::kHost> samples) {
  sampling_check::check_draw(header, table, parameters, samples);
  const sampling::TableView view = view_of(header, table, parameters.layer);
  const PointSource points(parameters);
  const SampleArrays arrays = sample_arrays(samples);
  parallel_ranges(executor, parameters.count, sampling_tuning::kSamplesPerTask,
                  [&](std::int64_t first, std::int64_t last) {
                    for (std::int64_t i = first; i < last; ++i) {
                      const sampling::FixedPoint2 point = points.point(i);
                      store_sample(sampling::sample(view, point.x, point.y), i, arrays);
                    }
                  });
}

void evaluate_density(CpuExecutor& executor, const sampling::TableHeader& header,
                      HostSpan<const std::byte> table, DensityPoints<Space::kHost> points,
                      HostSpan<float> pdf) {
  sampling_check::check_density(header, table, points, pdf);
  const sampling::TableView view = view_of(header, table, points.layer);
  parallel_ranges(executor, static_cast<std::int64_t>(pdf.size()), sampling_tuning::kSamplesPerTask,
                  [&](std::int64_t first, std::int64_t last) {
                    for (std::int64_t i = first; i < last; ++i) {
                      pdf.data()[i] = density_at(view, points.coordinates.data(), points.dimensions, i);
                    }
                  });
}

#if !CUMULUS_WITH_CUDA
// A build without CUDA has no device to make an executor of: these satisfy the linker.
namespace {
[[noreturn]] void no_cuda(const char* call) { throw CudaError(0, call, __FILE__, __LINE__); }
}  // namespace
void build_sampling_table(CudaExecutor& /*executor*/, DeviceImage<const float> /*weights*/,
                          const SamplingTableParams& /*params*/, DeviceSpan<std::byte> /*table*/,
                          SamplingTableReport* /*report*/) {
  no_cuda("build_sampling_table");
}
void build_sampling_table(CudaExecutor& /*executor*/, DeviceImage<const std::uint8_t> /*weights*/,
                          const SamplingTableParams& /*params*/, DeviceSpan<std::byte> /*table*/,
                          SamplingTableReport* /*report*/) {
  no_cuda("build_sampling_table");
}
void build_sampling_table(CudaExecutor& /*executor*/, DeviceImage<const Float16> /*weights*/,
                          const SamplingTableParams& /*params*/, DeviceSpan<std::byte> /*table*/,
                          SamplingTableReport* /*report*/) {
  no_cuda("build_sampling_table");
}
void draw_samples(CudaExecutor& /*executor*/, const sampling::TableHeader& /*header*/,
                  DeviceSpan<const std::byte> /*table*/, const DrawParameters& /*parameters*/,
                  DrawnSamples<Space::kDevice> /*samples*/) {
  no_cuda("draw_samples");
}
void evaluate_density(CudaExecutor& /*executor*/, const sampling::TableHeader& /*header*/,
                      DeviceSpan<const std::byte> /*table*/, DensityPoints<Space::kDevice> /*points*/,
                      DeviceSpan<float> /*pdf*/) {
  no_cuda("evaluate_density");
}
#endif

}  // namespace cumulus
