#include <algorithm>
#include <atomic>

#include "kernels/core/parallel.h"
#include "kernels/sampling_table/sampling_table.h"
#include "kernels/sampling_table/sampling_table_arithmetic.h"
#include "kernels/sampling_table/sampling_table_check.h"
#include "kernels/sampling_table/sampling_table_points.h"
#include "kernels/sampling_table/sampling_table_survey_cpu.h"
#include "kernels/sampling_table/sampling_table_tuning.h"

namespace cumulus {
namespace {

using namespace sampling_arithmetic;

template <class T>
T* section(HostSpan<std::byte> table, std::uint64_t offset) {
  return reinterpret_cast<T*>(table.data() + offset);
}

sampling::TableView view_of(const sampling::TableHeader& header, HostSpan<const std::byte> table) {
  return {header, reinterpret_cast<const unsigned char*>(table.data())};
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

void write_guide(const std::uint32_t* lower, std::uint32_t count, std::uint16_t* guide,
                 std::uint32_t guide_size) {
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto cell = static_cast<std::uint16_t>(i);
    const std::uint32_t end = guide_range(sampling::detail::cell_at(lower, count, i), guide_size).end;
    // Two without asking: most cells have no more, and the next cell overwrites what was too much.
    if (next + 2 <= guide_size) guide[next] = guide[next + 1] = cell;
    if (end > next + 2 || next + 2 > guide_size) {
      for (std::uint32_t g = next; g < end; ++g) guide[g] = cell;
    }
    next = std::max(next, end);
  }
  std::fill(guide + next, guide + guide_size, std::uint16_t{0});  // a row without mass
}

/// One build: the rows in parallel, then the marginal.
template <class T>
class TableBuilder {
 public:
  TableBuilder(HostImage<const T> weights, const SamplingTableParams& params, HostSpan<std::byte> table,
               HostSpan<RowMass> row_masses, const WeightAdjustment& adjustment, BuildFindings& findings)
      : weights_(weights),
        header_(sampling_table_header(params)),
        table_(table),
        row_masses_(row_masses),
        adjustment_(adjustment),
        findings_(findings),
        rule_(weight_rule(params, weights.channels)) {
    findings_ = {kNoneInvalid, {}};
  }

  void build_row(std::uint32_t y) {
    const std::size_t row = y;
    auto* cells = section<std::uint32_t>(table_, header_.row_cdf_offset) + row * header_.width;
    const std::uint32_t exponent = row_exponent(stage_weights(y, cells));
    const Tally all = write_lower_bounds(
        header_.width, [&](std::uint32_t x) { return integer_weight(cells[x], exponent); }, cells);
    auto* guide = section<std::uint16_t>(table_, header_.row_guide_offset) + row * header_.row_guide_size;
    write_guide(cells, header_.width, guide, header_.row_guide_size);
    row_masses_[row] = {row_mass(all.sum, header_.projection, y, header_.height), exponent, 0};
  }

  void build_marginal() {
    std::uint32_t heaviest = 0;
    for (const RowMass& row : row_masses_)
      heaviest = std::max(heaviest, mass_exponent(row.mass, row.exponent));
    auto* lower = section<std::uint32_t>(table_, header_.marginal_cdf_offset);
    const auto mass_at = [&](std::uint32_t y) {
      return integer_mass(row_masses_[y].mass, row_masses_[y].exponent, heaviest);
    };
    const Tally all = write_lower_bounds(header_.height, mass_at, lower);
    write_guide(lower, header_.height, section<std::uint16_t>(table_, header_.marginal_guide_offset),
                header_.marginal_guide_size);
    write_report(all);
  }

  void write_header_and_padding() {
    std::memcpy(table_.data(), &header_, sizeof(header_));
    for (const auto& gap : table_gaps(header_).gaps)
      std::memset(table_.data() + gap.begin, 0, gap.end - gap.begin);
  }

 private:
  /// Writes the bits of the row's weights, 0 for invalid ones, and returns the largest.
  std::uint32_t stage_weights(std::uint32_t y, std::uint32_t* cells) {
    const T* row = weights_.row(y);
    std::uint32_t largest = 0;
    std::uint32_t guard = 0;
    for (std::uint32_t x = 0; x < header_.width; ++x) {
      const Weight weight = load_weight(row + x * weights_.channels, rule_);
      cells[x] = adjusted(weight.bits, adjustment_);
      largest = std::max(largest, cells[x]);
      guard = std::max(guard, weight.guard);
    }
    if (guard >= kInfinityBits) note_first_invalid(y);
    return largest;
  }

  void write_report(const Tally& rows) {
    if (findings_.first_invalid != kNoneInvalid) {
      SamplingTableReport report = invalid_report(findings_.first_invalid, header_.width);
      report.value =
          static_cast<float>(weights_.row(report.y)[report.x * weights_.channels + report.channel]);
      findings_.report = report;
    } else if (rows.positive > 0) {
      findings_.report.outcome = SamplingTableReport::Outcome::kBuilt;
    }
  }

  void note_first_invalid(std::uint32_t y) {
    const T* texel = weights_.row(y);
    std::uint32_t x = 0;
    for (; load_weight(texel, rule_).guard < kInfinityBits; ++x) texel += weights_.channels;
    const std::uint64_t found = invalid_key(x, y, header_.width, first_invalid_channel(texel, rule_.counted));
    std::atomic_ref<std::uint64_t> first_invalid(findings_.first_invalid);
    std::uint64_t earliest = first_invalid.load();
    while (found < earliest && !first_invalid.compare_exchange_weak(earliest, found)) {
    }
  }

  HostImage<const T> weights_;
  sampling::TableHeader header_;
  HostSpan<std::byte> table_;
  HostSpan<RowMass> row_masses_;
  WeightAdjustment adjustment_;
  BuildFindings& findings_;
  WeightRule rule_;
};

template <class T>
void build(CpuExecutor& executor, HostImage<const T> weights, const SamplingTableParams& params,
           HostSpan<std::byte> table, SamplingTableReport* report) {
  sampling_check::check_build(weights, params, table);
  const auto row_masses = executor.scratch<RowMass>(static_cast<std::size_t>(params.height));
  BuildFindings& findings = executor.scratch<BuildFindings>(1)[0];
  WeightAdjustment adjustment;
  if (params.needs_survey()) {
    const auto surveys = executor.scratch<RowSurvey>(row_masses.size());
    const auto adjustments = executor.scratch<WeightAdjustment>(1);
    sampling_survey::survey_weights(executor, weights, params, surveys, adjustments);
    adjustment = adjustments[0];
  }
  TableBuilder<T> builder(weights, params, table, row_masses, adjustment, findings);
  const std::int64_t grain = std::max<std::int64_t>(1, sampling_tuning::kTexelsPerTask / params.width);
  parallel_ranges(executor, params.height, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t y = first; y < last; ++y) builder.build_row(static_cast<std::uint32_t>(y));
  });
  executor.check_interrupt();
  builder.build_marginal();
  builder.write_header_and_padding();
  *report = findings.report;
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
  const sampling::TableView view = view_of(header, table);
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
  const sampling::TableView view = view_of(header, table);
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
