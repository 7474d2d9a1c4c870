#include <algorithm>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "kernels/sampling_table/sampling_table.h"
#include "kernels/sampling_table/sampling_table_arithmetic.h"
#include "kernels/sampling_table/sampling_table_check.h"
#include "kernels/sampling_table/sampling_table_points.h"
#include "kernels/sampling_table/sampling_table_survey.cuh"
#include "kernels/sampling_table/sampling_table_tuning.h"

namespace cumulus {
namespace {

using namespace sampling_arithmetic;

struct Larger {
  __device__ std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a > b ? a : b; }
};

struct JoinTallies {
  __device__ Tally operator()(const Tally& a, const Tally& b) const {
    return {a.sum + b.sum, a.positive + b.positive};
  }
};

/// A row of 32-bit cells while its block works on it. In shared memory a word is left free after
/// every 32, so that threads which walk through neighbouring chunks meet different banks.
template <bool kOnChip>
struct Cells {
  std::uint32_t* words;

  __device__ std::uint32_t& operator[](std::uint32_t x) const { return words[kOnChip ? x + x / 32 : x]; }
};

std::size_t on_chip_bytes(std::uint32_t width) {
  return (static_cast<std::size_t>(width) + width / 32) * sizeof(std::uint32_t);
}

/// The block turns `count` masses into lower bounds. Each thread has a chunk of neighbouring cells:
/// it adds them up, one scan over the threads follows, and it goes through them again.
template <int kThreads, class MassAt, class LowerAt>
__device__ Tally write_lower_bounds(std::uint32_t count, const MassAt& mass_at, const LowerAt& lower_at) {
  using Scan = cub::BlockScan<Tally, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename Scan::TempStorage storage;
  const std::uint32_t chunk = (count + kThreads - 1) / kThreads;
  const std::uint32_t begin = min(threadIdx.x * chunk, count);
  const std::uint32_t end = min(begin + chunk, count);

  Tally own;
  for (std::uint32_t i = begin; i < end; ++i) own.add(mass_at(i));
  Tally before;
  Tally all;
  Scan(storage).ExclusiveScan(own, before, Tally{}, JoinTallies{}, all);
  const BoundScale scale(all);
  for (std::uint32_t i = begin; i < end; ++i) {
    const std::uint64_t mass = mass_at(i);  // before its place is taken
    lower_at(i) = scale.lower_bound(before);
    before.add(mass);
  }
  return all;
}

/// The warp writes its lanes' guide entries; a cell with many is written by all lanes together.
/// Every lane of the warp comes here.
__device__ void write_guide_ranges(GuideRange range, std::uint32_t cell, std::uint16_t* guide) {
  constexpr std::uint32_t kAlone = 8;
  const bool together = range.end > range.begin + kAlone;
  if (!together) {
    for (std::uint32_t g = range.begin; g < range.end; ++g) guide[g] = static_cast<std::uint16_t>(cell);
  }
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (unsigned waiting = __ballot_sync(~0u, together); waiting != 0; waiting &= waiting - 1) {
    const int source = __ffs(static_cast<int>(waiting)) - 1;
    const std::uint32_t end = __shfl_sync(~0u, range.end, source);
    const auto value = static_cast<std::uint16_t>(__shfl_sync(~0u, cell, source));
    const std::uint32_t begin = __shfl_sync(~0u, range.begin, source);
    for (std::uint32_t g = begin + static_cast<std::uint32_t>(lane); g < end; g += 32) guide[g] = value;
  }
}

/// The block writes the guide of `count` cells with the given lower bounds; `visit(i, lower)` sees each.
template <int kThreads, class LowerAt, class Visit>
__device__ void write_guide(std::uint32_t count, const LowerAt& lower_at, bool has_mass, std::uint16_t* guide,
                            std::uint32_t guide_size, const Visit& visit) {
  for (std::uint32_t first = 0; first < count; first += kThreads) {
    const std::uint32_t i = first + threadIdx.x;
    GuideRange range{0, 0};
    if (i < count) {
      const std::uint32_t lower = lower_at(i);
      const std::uint32_t next = i + 1 < count ? lower_at(i + 1) : sampling::kEmptyTail;
      range = guide_range(sampling::detail::cell_between(i, lower, next), guide_size);
      visit(i, lower);
    }
    write_guide_ranges(range, i, guide);
  }
  if (has_mass) return;
  for (std::uint32_t g = threadIdx.x; g < guide_size; g += kThreads) guide[g] = 0;
}

template <class T>
struct RowsArguments {
  DeviceImage<const T> weights;
  WeightRule rule;
  sampling::TableHeader header;
  std::byte* table;
  RowMass* row_masses;
  const WeightAdjustment* adjustments;  // null: weights stay as they are
  BuildFindings* findings;
};

/// Writes the bits of the row's weights, 0 for invalid ones, and returns the largest to every thread.
template <class T, int kThreads, bool kOnChip>
__device__ std::uint32_t stage_weights(const RowsArguments<T>& arguments, std::uint32_t y,
                                       Cells<kOnChip> cells) {
  using Reduce = cub::BlockReduce<std::uint32_t, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ std::uint32_t shared_largest;
  const DeviceImage<const T>& weights = arguments.weights;
  const T* row = weights.data + y * weights.row_stride;
  const std::uint32_t width = arguments.header.width;
  const WeightAdjustment adjustment =
      arguments.adjustments != nullptr ? *arguments.adjustments : WeightAdjustment{};

  std::uint32_t largest = 0;
  for (std::uint32_t x = threadIdx.x; x < width; x += kThreads) {
    const T* texel = row + x * weights.channels;
    const Weight weight = load_weight(texel, arguments.rule);
    const std::uint32_t bits = adjusted(weight.bits, adjustment);
    cells[x] = bits;
    largest = max(largest, bits);
    if (weight.guard >= kInfinityBits) {
      const std::uint64_t key =
          invalid_key(x, y, width, first_invalid_channel(texel, arguments.rule.counted));
      atomicMin(reinterpret_cast<unsigned long long*>(&arguments.findings->first_invalid),
                static_cast<unsigned long long>(key));
    }
  }
  largest = Reduce(storage).Reduce(largest, Larger{});
  if (threadIdx.x == 0) shared_largest = largest;
  __syncthreads();
  return shared_largest;
}

/// One block a row: stages the weights, turns them into lower bounds in place, writes the row and its guide.
template <class T, int kThreads, bool kOnChip>
__global__ void __launch_bounds__(kThreads) build_rows(RowsArguments<T> arguments) {
  extern __shared__ std::uint32_t shared_cells[];
  const sampling::TableHeader& header = arguments.header;
  const std::uint32_t y = blockIdx.x;
  auto* row = reinterpret_cast<std::uint32_t*>(arguments.table + header.row_cdf_offset) +
              static_cast<std::size_t>(y) * header.width;
  auto* guide = reinterpret_cast<std::uint16_t*>(arguments.table + header.row_guide_offset) +
                static_cast<std::size_t>(y) * header.row_guide_size;
  const Cells<kOnChip> cells{kOnChip ? shared_cells : row};

  const std::uint32_t exponent = row_exponent(stage_weights<T, kThreads>(arguments, y, cells));
  const Tally all = write_lower_bounds<kThreads>(
      header.width, [&](std::uint32_t x) { return integer_weight(cells[x], exponent); },
      [&](std::uint32_t x) -> std::uint32_t& { return cells[x]; });
  if (threadIdx.x == 0) {
    arguments.row_masses[y] = {row_mass(all.sum, header.projection, y, header.height), exponent, 0};
  }
  __syncthreads();
  write_guide<kThreads>(
      header.width, [&](std::uint32_t x) { return cells[x]; }, all.positive > 0, guide, header.row_guide_size,
      [&](std::uint32_t x, std::uint32_t lower) {
        if constexpr (kOnChip) row[x] = lower;
      });
}

/// One block: the marginal over the rows, the header, the padding and the report.
template <class T, int kThreads>
__global__ void __launch_bounds__(kThreads) build_marginal(RowsArguments<T> arguments, TableGaps gaps) {
  using Reduce = cub::BlockReduce<std::uint32_t, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ std::uint32_t heaviest;
  const sampling::TableHeader& header = arguments.header;
  const RowMass* rows = arguments.row_masses;
  auto* lower = reinterpret_cast<std::uint32_t*>(arguments.table + header.marginal_cdf_offset);
  auto* guide = reinterpret_cast<std::uint16_t*>(arguments.table + header.marginal_guide_offset);

  std::uint32_t largest = 0;
  for (std::uint32_t y = threadIdx.x; y < header.height; y += kThreads) {
    largest = max(largest, mass_exponent(rows[y].mass, rows[y].exponent));
  }
  largest = Reduce(storage).Reduce(largest, Larger{});
  if (threadIdx.x == 0) heaviest = largest;
  __syncthreads();

  const Tally all = write_lower_bounds<kThreads>(
      header.height, [&](std::uint32_t y) { return integer_mass(rows[y].mass, rows[y].exponent, heaviest); },
      [&](std::uint32_t y) -> std::uint32_t& { return lower[y]; });
  __syncthreads();
  write_guide<kThreads>(
      header.height, [&](std::uint32_t y) { return lower[y]; }, all.positive > 0, guide,
      header.marginal_guide_size, [](std::uint32_t, std::uint32_t) {});

  for (const TableGap& gap : gaps.gaps) {
    for (std::uint64_t i = gap.begin + threadIdx.x; i < gap.end; i += kThreads)
      arguments.table[i] = std::byte{0};
  }
  if (threadIdx.x > 0) return;
  *reinterpret_cast<sampling::TableHeader*>(arguments.table) = header;
  SamplingTableReport report;
  const std::uint64_t invalid = arguments.findings->first_invalid;
  if (invalid != kNoneInvalid) {
    report = invalid_report(invalid, header.width);
    const DeviceImage<const T>& weights = arguments.weights;
    report.value = static_cast<float>(
        weights.data[report.y * weights.row_stride + report.x * weights.channels + report.channel]);
  } else if (all.positive > 0) {
    report.outcome = SamplingTableReport::Outcome::kBuilt;
  }
  arguments.findings->report = report;
}

/// Whether a block of `kernel` may use `dynamic_bytes` of shared memory on this device.
template <class T>
bool fits_on_chip(const CudaExecutor& executor, void (*kernel)(RowsArguments<T>), std::size_t dynamic_bytes) {
  int limit = 0;
  CUMULUS_CUDA(
      cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, executor.device().ordinal()));
  cudaFuncAttributes attributes{};
  CUMULUS_CUDA(cudaFuncGetAttributes(&attributes, kernel));
  return dynamic_bytes + attributes.sharedSizeBytes <= static_cast<std::size_t>(limit);
}

template <class T, int kThreads>
void launch_build_rows(CudaExecutor& executor, const RowsArguments<T>& arguments) {
  const unsigned rows = arguments.header.height;
  const auto on_chip = build_rows<T, kThreads, true>;
  const std::size_t bytes = on_chip_bytes(arguments.header.width);
  if (arguments.header.width <= sampling_tuning::kWidestRowOnChip &&
      fits_on_chip<T>(executor, on_chip, bytes)) {
    CUMULUS_CUDA(
        cudaFuncSetAttribute(on_chip, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
    on_chip<<<rows, kThreads, bytes, executor.stream()>>>(arguments);
  } else {
    build_rows<T, kThreads, false><<<rows, kThreads, 0, executor.stream()>>>(arguments);
  }
  CUMULUS_CUDA(cudaGetLastError());
}

template <class T>
void build(CudaExecutor& executor, DeviceImage<const T> weights, const SamplingTableParams& params,
           DeviceSpan<std::byte> table, SamplingTableReport* report) {
  sampling_check::check_build(weights, params, table);
  executor.bind_thread();
  const auto row_masses = executor.scratch<RowMass>(static_cast<std::size_t>(params.height));
  const auto findings = executor.scratch<BuildFindings>(1);
  CUMULUS_CUDA(cudaMemsetAsync(findings.data(), 0xFF, sizeof(BuildFindings), executor.stream()));

  DeviceSpan<WeightAdjustment> adjustments;
  if (params.needs_survey()) {
    const auto surveys = executor.scratch<RowSurvey>(row_masses.size());
    adjustments = executor.scratch<WeightAdjustment>(1);
    sampling_survey::survey_weights(executor, weights, params, surveys, adjustments);
    executor.check_interrupt();
  }
  const RowsArguments<T> arguments{weights,
                                   weight_rule(params, weights.channels),
                                   sampling_table_header(params),
                                   table.data(),
                                   row_masses.data(),
                                   adjustments.data(),
                                   findings.data()};
  if (arguments.header.width <= sampling_tuning::kNarrowRow) {
    launch_build_rows<T, sampling_tuning::kNarrowRowThreads>(executor, arguments);
  } else if (arguments.header.width <= sampling_tuning::kWideRow) {
    launch_build_rows<T, sampling_tuning::kRowThreads>(executor, arguments);
  } else {
    launch_build_rows<T, sampling_tuning::kWideRowThreads>(executor, arguments);
  }
  executor.check_interrupt();
  constexpr int kThreads = sampling_tuning::kMarginalThreads;
  build_marginal<T, kThreads><<<1, kThreads, 0, executor.stream()>>>(arguments, table_gaps(arguments.header));
  CUMULUS_CUDA(cudaGetLastError());
  executor.download({reinterpret_cast<const std::byte*>(&findings.data()->report), sizeof(*report)},
                    {reinterpret_cast<std::byte*>(report), sizeof(*report)});
}

sampling::TableView view_of(const sampling::TableHeader& header, DeviceSpan<const std::byte> table) {
  return {header, reinterpret_cast<const unsigned char*>(table.data())};
}

__global__ void __launch_bounds__(sampling_tuning::kDrawThreads)
    draw_points(sampling::TableView table, PointSource points, std::int64_t count, SampleArrays arrays) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const sampling::FixedPoint2 point = points.point(i);
  store_sample(sampling::sample(table, point.x, point.y), i, arrays);
}

__global__ void __launch_bounds__(sampling_tuning::kDrawThreads)
    evaluate_points(sampling::TableView table, const float* coordinates, int dimensions, std::int64_t count,
                    float* pdf) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  pdf[i] = density_at(table, coordinates, dimensions, i);
}

unsigned blocks_for(std::int64_t count) {
  return static_cast<unsigned>((count + sampling_tuning::kDrawThreads - 1) / sampling_tuning::kDrawThreads);
}

}  // namespace

void build_sampling_table(CudaExecutor& executor, DeviceImage<const float> weights,
                          const SamplingTableParams& params, DeviceSpan<std::byte> table,
                          SamplingTableReport* report) {
  build(executor, weights, params, table, report);
}

void build_sampling_table(CudaExecutor& executor, DeviceImage<const std::uint8_t> weights,
                          const SamplingTableParams& params, DeviceSpan<std::byte> table,
                          SamplingTableReport* report) {
  build(executor, weights, params, table, report);
}

void build_sampling_table(CudaExecutor& executor, DeviceImage<const Float16> weights,
                          const SamplingTableParams& params, DeviceSpan<std::byte> table,
                          SamplingTableReport* report) {
  build(executor, weights, params, table, report);
}

void draw_samples(CudaExecutor& executor, const sampling::TableHeader& header,
                  DeviceSpan<const std::byte> table, const DrawParameters& parameters,
                  DrawnSamples<Space::kDevice> samples) {
  sampling_check::check_draw(header, table, parameters, samples);
  if (parameters.count == 0) return;
  executor.bind_thread();
  draw_points<<<blocks_for(parameters.count), sampling_tuning::kDrawThreads, 0, executor.stream()>>>(
      view_of(header, table), PointSource(parameters), parameters.count, sample_arrays(samples));
  CUMULUS_CUDA(cudaGetLastError());
}

void evaluate_density(CudaExecutor& executor, const sampling::TableHeader& header,
                      DeviceSpan<const std::byte> table, DensityPoints<Space::kDevice> points,
                      DeviceSpan<float> pdf) {
  sampling_check::check_density(header, table, points, pdf);
  if (pdf.empty()) return;
  executor.bind_thread();
  const auto count = static_cast<std::int64_t>(pdf.size());
  evaluate_points<<<blocks_for(count), sampling_tuning::kDrawThreads, 0, executor.stream()>>>(
      view_of(header, table), points.coordinates.data(), points.dimensions, count, pdf.data());
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace cumulus
