#include <algorithm>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <type_traits>

#include "kernels/sampling_table/sampling_table.h"
#include "kernels/sampling_table/sampling_table_arithmetic.h"
#include "kernels/sampling_table/sampling_table_check.h"
#include "kernels/sampling_table/sampling_table_lookup.cuh"
#include "kernels/sampling_table/sampling_table_points.h"
#include "kernels/sampling_table/sampling_table_rows.cuh"
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
  const sampling_lookup::Chunk chunk = sampling_lookup::chunk_of<kThreads>(count);

  Tally own;
  for (std::uint32_t i = chunk.begin; i < chunk.end; ++i) own.add(mass_at(i));
  Tally before;
  Tally all;
  Scan(storage).ExclusiveScan(own, before, Tally{}, JoinTallies{}, all);
  const BoundScale scale(all);
  for (std::uint32_t i = chunk.begin; i < chunk.end; ++i) {
    const std::uint64_t mass = mass_at(i);  // before its place is taken
    lower_at(i) = scale.lower_bound(before);
    before.add(mass);
  }
  return all;
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
__device__ std::uint32_t stage_weights(const RowsArguments<T>& arguments, std::uint32_t row,
                                       Cells<kOnChip> cells) {
  using Reduce = cub::BlockReduce<std::uint32_t, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ std::uint32_t shared_largest;
  const DeviceImage<const T>& weights = arguments.weights;
  const T* texels = weights.data + row * weights.row_stride;
  const std::uint32_t width = arguments.header.width;
  const WeightAdjustment adjustment = arguments.adjustments != nullptr
                                          ? arguments.adjustments[row / arguments.header.height]
                                          : WeightAdjustment{};

  std::uint32_t largest = 0;
  for (std::uint32_t x = threadIdx.x; x < width; x += kThreads) {
    const T* texel = texels + x * weights.channels;
    const Weight weight = load_weight(texel, arguments.rule);
    const std::uint32_t bits = adjusted(weight.bits, adjustment);
    cells[x] = bits;
    largest = max(largest, bits);
    if (weight.guard >= kInfinityBits) {
      const std::uint64_t key =
          invalid_key(x, row, width, first_invalid_channel(texel, arguments.rule.counted));
      atomicMin(reinterpret_cast<unsigned long long*>(&arguments.findings->first_invalid),
                static_cast<unsigned long long>(key));
    }
  }
  largest = Reduce(storage).Reduce(largest, Larger{});
  if (threadIdx.x == 0) shared_largest = largest;
  __syncthreads();
  return shared_largest;
}

/// One block a row of any layer: stages the weights, turns them into lower bounds in place, writes the row,
/// its guide and its forest.
template <class T, int kThreads, bool kOnChip>
__global__ void __launch_bounds__(kThreads) build_rows(RowsArguments<T> arguments) {
  extern __shared__ std::uint32_t shared_cells[];
  const sampling::TableHeader& header = arguments.header;
  const std::uint32_t row = blockIdx.x;
  const sampling_layout::Target target = sampling_layout::row_target(header, arguments.table, row);
  const Cells<kOnChip> cells{kOnChip ? shared_cells : target.lower};

  const std::uint32_t exponent =
      row_exponent(stage_weights<T, kThreads>(arguments, row, cells), header.width);
  const Tally all = write_lower_bounds<kThreads>(
      header.width, [&](std::uint32_t x) { return integer_weight(cells[x], exponent); },
      [&](std::uint32_t x) -> std::uint32_t& { return cells[x]; });
  if (threadIdx.x == 0) {
    arguments.row_masses[row] = {row_mass(all.sum, header.projection, row % header.height, header.height),
                                 exponent, 0};
  }
  __syncthreads();
  sampling_lookup::write_guide_and_forest<kThreads>(
      target, [cells](std::uint32_t x) { return cells[x]; }, all.positive > 0,
      [&](std::uint32_t x, std::uint32_t lower) {
        if constexpr (kOnChip) target.lower[x] = lower;
      });
}

/// Four neighbouring texels of kChannels each.
template <class T, int kChannels>
struct TexelQuad {
  static constexpr int kBytes = 4 * kChannels * static_cast<int>(sizeof(T));
  using Unit = std::conditional_t<kBytes % 16 == 0, uint4, std::conditional_t<kBytes % 8 == 0, uint2, unsigned>>;
  static constexpr int kUnits = kBytes / static_cast<int>(sizeof(Unit));
  alignas(Unit) T texels[4 * kChannels];

  static __device__ bool fits(const T* from) { return reinterpret_cast<std::uintptr_t>(from) % sizeof(Unit) == 0; }
  __device__ void load(const T* from) {
#pragma unroll
    for (int i = 0; i < kUnits; ++i) reinterpret_cast<Unit*>(texels)[i] = reinterpret_cast<const Unit*>(from)[i];
  }
};

/// The bits of a block's weights, a thread's in its registers.
template <class T, int kThreads, int kQuads>
class RowWeights {
 public:
  __device__ RowWeights(const RowsArguments<T>& arguments, std::uint32_t row)
      : arguments_(arguments),
        texels_(arguments.weights.data + row * arguments.weights.row_stride),
        row_(row) {}

  /// Reads the row, and returns the largest bits of this thread's weights.
  __device__ std::uint32_t read() {
    std::uint32_t guard = 0;
    switch (arguments_.weights.channels) {
      case 1:
        guard = read_all<1>();
        break;
      case 3:
        guard = read_all<3>();
        break;
      case 4:
        guard = read_all<4>();
        break;
      default:
        guard = read_each();
    }
    if (guard >= kInfinityBits) note_invalid();
    std::uint32_t largest = 0;
    const WeightAdjustment adjustment = arguments_.adjustments != nullptr
                                            ? arguments_.adjustments[row_ / arguments_.header.height]
                                            : WeightAdjustment{};
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad) {
#pragma unroll
      for (std::uint32_t k = 0; k < 4; ++k) {
        const bool inside = Cells::first_cell(quad) + k < arguments_.header.width;
        bits_[quad][k] = inside ? adjusted(bits_[quad][k], adjustment) : 0;
        largest = max(largest, bits_[quad][k]);
      }
    }
    return largest;
  }

  __device__ std::uint32_t bits(int quad, std::uint32_t k) const { return bits_[quad][k]; }

 private:
  using Cells = sampling_rows::Shape<kThreads, kQuads>;

  __device__ std::uint32_t note(int quad, std::uint32_t k, const T* texel) {
    const Weight weight = load_weight(texel, arguments_.rule);
    bits_[quad][k] = weight.bits;
    return weight.guard;
  }

  template <int kChannels>
  __device__ std::uint32_t read_all() {
    using Texels = TexelQuad<T, kChannels>;
    const std::uint32_t width = arguments_.header.width;
    if (width % 4 != 0 || !Texels::fits(texels_)) return read_each();
    Texels loaded[kQuads];
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad) {
      const std::uint32_t cell = Cells::first_cell(quad);
      loaded[quad] = {};
      if (cell < width) loaded[quad].load(texels_ + cell * kChannels);
    }
    std::uint32_t guard = 0;
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad) {
#pragma unroll
      for (std::uint32_t k = 0; k < 4; ++k) guard = max(guard, note(quad, k, loaded[quad].texels + k * kChannels));
    }
    return guard;
  }

  __device__ std::uint32_t read_each() {
    std::uint32_t guard = 0;
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad) {
#pragma unroll
      for (std::uint32_t k = 0; k < 4; ++k) {
        const std::uint32_t x = Cells::first_cell(quad) + k;
        bits_[quad][k] = 0;
        if (x < arguments_.header.width) guard = max(guard, note(quad, k, texels_ + x * arguments_.weights.channels));
      }
    }
    return guard;
  }

  __device__ void note_invalid() const {
    for (int quad = 0; quad < kQuads; ++quad) {
      for (std::uint32_t k = 0; k < 4; ++k) {
        const std::uint32_t x = Cells::first_cell(quad) + k;
        if (x >= arguments_.header.width) return;
        const T* texel = texels_ + x * arguments_.weights.channels;
        if (load_weight(texel, arguments_.rule).guard < kInfinityBits) continue;
        const std::uint64_t key = invalid_key(x, row_, arguments_.header.width,
                                              first_invalid_channel(texel, arguments_.rule.counted));
        atomicMin(reinterpret_cast<unsigned long long*>(&arguments_.findings->first_invalid),
                  static_cast<unsigned long long>(key));
        return;
      }
    }
  }

  const RowsArguments<T>& arguments_;
  const T* texels_;
  std::uint32_t row_;
  std::uint32_t bits_[kQuads][4];
};

/// One block a row of any layer, which stays on chip.
template <class T, int kThreads, int kQuads>
__global__ void __launch_bounds__(kThreads) build_rows_on_chip(const __grid_constant__ RowsArguments<T> arguments) {
  extern __shared__ uint4 shared_quads[];
  const sampling::TableHeader& header = arguments.header;
  const std::uint32_t row = blockIdx.x;
  const sampling_layout::Target target = sampling_layout::row_target(header, arguments.table, row);
  const sampling_rows::OnChip chip(reinterpret_cast<std::uint32_t*>(shared_quads), target.count, target.guide_size);

  sampling_rows::clear<kThreads>(chip, target.guide_size);
  RowWeights<T, kThreads, kQuads> weights(arguments, row);
  const std::uint32_t largest = sampling_rows::largest_of_block<kThreads / 32>(weights.read());
  const std::uint32_t exponent = row_exponent(largest, header.width);
  const Tally all = sampling_rows::build_distribution<kThreads, kQuads>(
      target, chip, [&](int quad, std::uint32_t k) { return integer_weight(weights.bits(quad, k), exponent); });
  if (threadIdx.x == 0) {
    arguments.row_masses[row] = {row_mass(all.sum, header.projection, row % header.height, header.height),
                                 exponent, 0};
  }
}

/// One block a layer: the marginal over its rows, which stays on chip.
template <int kThreads, int kQuads>
__global__ void __launch_bounds__(kThreads)
    build_marginals_on_chip(const __grid_constant__ sampling::TableHeader header, std::byte* table, const RowMass* row_masses,
                    BuildFindings* findings) {
  extern __shared__ uint4 shared_quads[];
  using Cells = sampling_rows::Shape<kThreads, kQuads>;
  const sampling_layout::Target target = sampling_layout::marginal_target(header, table, blockIdx.x);
  const sampling_rows::OnChip chip(reinterpret_cast<std::uint32_t*>(shared_quads), target.count, target.guide_size);
  const RowMass* rows = row_masses + static_cast<std::size_t>(blockIdx.x) * header.height;

  sampling_rows::clear<kThreads>(chip, target.guide_size);
  std::uint32_t largest = 0;
  for (std::uint32_t y = threadIdx.x; y < header.height; y += kThreads) {
    largest = max(largest, mass_exponent(rows[y].mass, rows[y].exponent));
  }
  const std::uint32_t heaviest = sampling_rows::largest_of_block<kThreads / 32>(largest);
  const Tally all = sampling_rows::build_distribution<kThreads, kQuads>(target, chip, [&](int quad, std::uint32_t k) -> std::uint64_t {
    const std::uint32_t y = Cells::first_cell(quad) + k;
    return y < header.height ? integer_mass(rows[y].mass, rows[y].exponent, heaviest) : 0;
  });
  if (threadIdx.x == 0 && all.positive == 0) atomicMin(&findings->first_empty, blockIdx.x);
}

/// One block a layer: the marginal over its rows.
template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    build_marginals(sampling::TableHeader header, std::byte* table, const RowMass* row_masses,
                    BuildFindings* findings) {
  using Reduce = cub::BlockReduce<std::uint32_t, kThreads>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ std::uint32_t heaviest;
  const sampling_layout::Target target = sampling_layout::marginal_target(header, table, blockIdx.x);
  const RowMass* rows = row_masses + static_cast<std::size_t>(blockIdx.x) * header.height;

  std::uint32_t largest = 0;
  for (std::uint32_t y = threadIdx.x; y < header.height; y += kThreads) {
    largest = max(largest, mass_exponent(rows[y].mass, rows[y].exponent));
  }
  largest = Reduce(storage).Reduce(largest, Larger{});
  if (threadIdx.x == 0) heaviest = largest;
  __syncthreads();

  const Tally all = write_lower_bounds<kThreads>(
      header.height, [&](std::uint32_t y) { return integer_mass(rows[y].mass, rows[y].exponent, heaviest); },
      [&](std::uint32_t y) -> std::uint32_t& { return target.lower[y]; });
  __syncthreads();
  sampling_lookup::write_guide_and_forest<kThreads>(target, sampling_lookup::LowerIn{target.lower},
                                                    all.positive > 0, [](std::uint32_t, std::uint32_t) {});
  if (threadIdx.x == 0 && all.positive == 0) atomicMin(&findings->first_empty, blockIdx.x);
}

/// One block a distribution: the nodes that need its lower bounds in memory.
template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    build_other_nodes(sampling::TableHeader header, std::byte* table, bool marginal) {
  const sampling_layout::Target target = marginal
                                             ? sampling_layout::marginal_target(header, table, blockIdx.x)
                                             : sampling_layout::row_target(header, table, blockIdx.x);
  if (target.lower[0] == sampling::kEmptyTail) return;  // zeros are there
  sampling_lookup::write_other_nodes<kThreads>(target);
}

/// One block: the header, the padding and the report.
template <class T>
__global__ void conclude(RowsArguments<T> arguments, TableGaps gaps) {
  for (const TableGap& gap : gaps.gaps) {
    for (std::uint64_t i = gap.begin + threadIdx.x; i < gap.end; i += blockDim.x) {
      arguments.table[i] = std::byte{0};
    }
  }
  if (threadIdx.x > 0) return;
  *reinterpret_cast<sampling::TableHeader*>(arguments.table) = arguments.header;
  arguments.findings->report = report_of(*arguments.findings, arguments.weights, arguments.header.height);
}

/// Calls `launch` with the smallest shape of a block that holds `count` cells.
template <class Launch>
void with_shape(std::uint32_t count, const Launch& launch) {
  if (count <= 512) return launch(std::integral_constant<int, 128>{}, std::integral_constant<int, 1>{});
  if (count <= 1024) return launch(std::integral_constant<int, 128>{}, std::integral_constant<int, 2>{});
  if (count <= 2048) return launch(std::integral_constant<int, 256>{}, std::integral_constant<int, 2>{});
  if (count <= 4096) return launch(std::integral_constant<int, 256>{}, std::integral_constant<int, 4>{});
  if (count <= 8192) return launch(std::integral_constant<int, 512>{}, std::integral_constant<int, 4>{});
  if (count <= 16384) return launch(std::integral_constant<int, 1024>{}, std::integral_constant<int, 4>{});
  return launch(std::integral_constant<int, 1024>{}, std::integral_constant<int, 8>{});
}

/// Shared memory that a block of this device may have, less what the kernels have besides OnChip.
std::size_t most_on_chip(const CudaExecutor& executor) {
  int limit = 0;
  CUMULUS_CUDA(
      cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, executor.device().ordinal()));
  return static_cast<std::size_t>(limit) - 2048;
}

template <class... Arguments, class... Values>
void launch_on_chip(const CudaExecutor& executor, void (*kernel)(Arguments...), unsigned blocks, int threads,
                    std::size_t bytes, const Values&... values) {
  CUMULUS_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  kernel<<<blocks, static_cast<unsigned>(threads), bytes, executor.stream()>>>(values...);
  CUMULUS_CUDA(cudaGetLastError());
}

template <class T>
bool build_rows_where_they_fit(const CudaExecutor& executor, const RowsArguments<T>& arguments) {
  const sampling::TableHeader& header = arguments.header;
  const std::size_t bytes = sampling_rows::OnChip::bytes(header.width, header.row_guide_size);
  if (header.width > sampling::kNarrowCells || bytes > most_on_chip(executor)) return false;
  with_shape(header.width, [&](auto threads, auto quads) {
    launch_on_chip(executor, build_rows_on_chip<T, decltype(threads)::value, decltype(quads)::value>, header.layers * header.height, threads, bytes, arguments);
  });
  return true;
}

bool build_marginals_where_they_fit(const CudaExecutor& executor, const sampling::TableHeader& header, std::byte* table,
                                    const RowMass* row_masses, BuildFindings* findings) {
  const std::size_t bytes = sampling_rows::OnChip::bytes(header.height, header.marginal_guide_size);
  if (bytes > most_on_chip(executor)) return false;
  with_shape(header.height, [&](auto threads, auto quads) {
    launch_on_chip(executor, build_marginals_on_chip<decltype(threads)::value, decltype(quads)::value>, header.layers, threads, bytes, header, table, row_masses, findings);
  });
  return true;
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
  const unsigned rows = arguments.header.layers * arguments.header.height;
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

void launch_build_other_nodes(CudaExecutor& executor, const sampling::TableHeader& header, std::byte* table) {
  constexpr int kThreads = sampling_tuning::kNodeThreads;
  const auto kernel = build_other_nodes<kThreads>;
  kernel<<<header.layers * header.height, kThreads, 0, executor.stream()>>>(header, table, false);
  CUMULUS_CUDA(cudaGetLastError());
  kernel<<<header.layers, kThreads, 0, executor.stream()>>>(header, table, true);
  CUMULUS_CUDA(cudaGetLastError());
}

template <class T>
void build(CudaExecutor& executor, DeviceImage<const T> weights, const SamplingTableParams& params,
           DeviceSpan<std::byte> table, SamplingTableReport* report) {
  sampling_check::check_build(weights, params, table);
  executor.bind_thread();
  const auto row_masses = executor.scratch<RowMass>(static_cast<std::size_t>(params.layers * params.height));
  const auto findings = executor.scratch<BuildFindings>(1);
  CUMULUS_CUDA(cudaMemsetAsync(findings.data(), 0xFF, sizeof(BuildFindings), executor.stream()));

  DeviceSpan<WeightAdjustment> adjustments;
  if (params.needs_survey()) {
    const auto surveys = executor.scratch<RowSurvey>(row_masses.size());
    adjustments = executor.scratch<WeightAdjustment>(static_cast<std::size_t>(params.layers));
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
  const sampling::TableHeader& header = arguments.header;
  if (build_rows_where_they_fit(executor, arguments)) {
  } else if (header.width <= sampling_tuning::kNarrowRow) {
    launch_build_rows<T, sampling_tuning::kNarrowRowThreads>(executor, arguments);
  } else if (header.width <= sampling_tuning::kWideRow) {
    launch_build_rows<T, sampling_tuning::kRowThreads>(executor, arguments);
  } else {
    launch_build_rows<T, sampling_tuning::kWideRowThreads>(executor, arguments);
  }
  executor.check_interrupt();
  constexpr int kThreads = sampling_tuning::kMarginalThreads;
  if (!build_marginals_where_they_fit(executor, header, table.data(), row_masses.data(), findings.data()))
  build_marginals<kThreads><<<header.layers, kThreads, 0, executor.stream()>>>(
      header, table.data(), row_masses.data(), findings.data());
  CUMULUS_CUDA(cudaGetLastError());
  if (header.method != sampling::Method::kRadixForest &&
      sampling::node_bytes(header.method, header.width) + sampling::node_bytes(header.method, header.height) >
          0) {
    executor.check_interrupt();
    launch_build_other_nodes(executor, header, table.data());
  }
  conclude<T><<<1, sampling_tuning::kConcludeThreads, 0, executor.stream()>>>(arguments, table_gaps(header));
  CUMULUS_CUDA(cudaGetLastError());
  executor.download({reinterpret_cast<const std::byte*>(&findings.data()->report), sizeof(*report)},
                    {reinterpret_cast<std::byte*>(report), sizeof(*report)});
}

sampling::TableView view_of(const sampling::TableHeader& header, DeviceSpan<const std::byte> table,
                            std::uint32_t layer) {
  return {header, reinterpret_cast<const unsigned char*>(table.data()), layer};
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
      view_of(header, table, parameters.layer), PointSource(parameters), parameters.count,
      sample_arrays(samples));
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
      view_of(header, table, points.layer), points.coordinates.data(), points.dimensions, count, pdf.data());
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace cumulus
