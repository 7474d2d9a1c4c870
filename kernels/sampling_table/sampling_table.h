#pragma once

#include <cstddef>
#include <cstdint>

#include "cumulus/sampling.h"
#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"
#include "kernels/core/float16.h"
#include "kernels/core/views.h"
#include "kernels/sampling_table/layout.h"
#include "kernels/sampling_table/scratch.h"

namespace cumulus {

// Sampling tables of images (marginal + conditional inversion in fixed point) by five methods; the default is
// the balanced forest: a guide table, and bisection of the cells that overlap a guide cell, the last few by
// one look. The radix forest is that of N. Binder and A. Keller, "Massively Parallel Construction of Radix
// Tree Forests for the Efficient Sampling of Discrete or Piecewise Constant Probability Distributions", 2020.
// docs/operations/sampling_table_format.md has the arithmetic; it is integer from the weights on, so that
// tables are the same bytes on both backends, from run to run, on any number of threads.
//
// For every function here: views lie in the executor's memory space and do not overlap; the CPU
// overloads return when the result is there, the CUDA overloads put their work on the executor's
// stream and return. Views whose extents do not fit throw std::invalid_argument before anything
// runs. A failing device throws CudaError, a cancelled call Interrupted (checked
// between kernels).

/// Builds the table of `weights` ([layers * height, width, channels]; rows may be padded) into `table`, which
/// has sampling_table_bytes(params) bytes and begins at a multiple of 8. One channel is the weight itself, of
/// two the first is; of three or four the weight is the luminance of the first three. kLatLong tables weigh
/// each row by its solid angle besides.
///
/// `report` is host memory; it holds the outcome once executor.synchronize() has returned. Keep it until
/// then; where it is pinned the call stays asynchronous.
void build_sampling_table(CpuExecutor& executor, HostImage<const float> weights,
                          const SamplingTableParams& params, HostSpan<std::byte> table,
                          SamplingTableReport* report);
void build_sampling_table(CpuExecutor& executor, HostImage<const std::uint8_t> weights,
                          const SamplingTableParams& params, HostSpan<std::byte> table,
                          SamplingTableReport* report);
void build_sampling_table(CpuExecutor& executor, HostImage<const Float16> weights,
                          const SamplingTableParams& params, HostSpan<std::byte> table,
                          SamplingTableReport* report);
void build_sampling_table(CudaExecutor& executor, DeviceImage<const float> weights,
                          const SamplingTableParams& params, DeviceSpan<std::byte> table,
                          SamplingTableReport* report);
void build_sampling_table(CudaExecutor& executor, DeviceImage<const std::uint8_t> weights,
                          const SamplingTableParams& params, DeviceSpan<std::byte> table,
                          SamplingTableReport* report);
void build_sampling_table(CudaExecutor& executor, DeviceImage<const Float16> weights,
                          const SamplingTableParams& params, DeviceSpan<std::byte> table,
                          SamplingTableReport* report);

enum class PointSequence : std::uint32_t {
  kSobol,       ///< The first two dimensions of Sobol's sequence.
  kHammersley,  ///< (i / total, radical inverse of i).
  kRandom,      ///< Philox-4x32-10, keyed by the seed.
};

/// Which points are drawn: those with index first_index to first_index + count - 1.
struct DrawParameters {
  std::int64_t count = 0;        ///< At least 0.
  std::int64_t first_index = 0;  ///< At least 0; first_index + count is at most 2^32.
  PointSequence sequence = PointSequence::kSobol;
  std::uint64_t seed = 0;   ///< kRandom: the key; otherwise a digital shift, 0 for none.
  std::int64_t total = 0;   ///< kHammersley: size of the whole set; 0: first_index + count. At most 2^32.
  std::uint32_t layer = 0;  ///< Which of the table's layers.
};

/// Where the samples go, one after another.
template <Space S>
struct DrawnSamples {
  Span<float, S> position;   ///< [count, 2]: u, v.
  Span<float, S> direction;  ///< [count, 3], or empty where it is not wanted; of a kPlane table always empty.
  Span<float, S> pdf;        ///< [count].
};

/// Draws `parameters.count` samples from `table`, whose first 256 bytes are `header`; the header must
/// have passed sampling::check_header, the sections may hold anything. Takes no scratch memory.
void draw_samples(CpuExecutor& executor, const sampling::TableHeader& header, HostSpan<const std::byte> table,
                  const DrawParameters& parameters, DrawnSamples<Space::kHost> samples);
void draw_samples(CudaExecutor& executor, const sampling::TableHeader& header,
                  DeviceSpan<const std::byte> table, const DrawParameters& parameters,
                  DrawnSamples<Space::kDevice> samples);

/// The samples at points of the caller's own, one after another; otherwise as draw_samples.
void sample_points(CpuExecutor& executor, const sampling::TableHeader& header,
                   HostSpan<const std::byte> table, HostSpan<const sampling::FixedPoint2> points,
                   std::uint32_t layer, DrawnSamples<Space::kHost> samples);
void sample_points(CudaExecutor& executor, const sampling::TableHeader& header,
                   DeviceSpan<const std::byte> table, DeviceSpan<const sampling::FixedPoint2> points,
                   std::uint32_t layer, DrawnSamples<Space::kDevice> samples);

/// Where densities are wanted, one after another.
template <Space S>
struct DensityPoints {
  Span<const float, S> coordinates;
  int dimensions = 2;       ///< 2: positions (u, v); 3: directions, which only tables of the sphere have.
  std::uint32_t layer = 0;  ///< Which of the table's layers.
};

/// The table's density at each of `points`, as sampling::pdf has it. `table` and `header` as for
/// draw_samples. Takes no scratch memory.
void evaluate_density(CpuExecutor& executor, const sampling::TableHeader& header,
                      HostSpan<const std::byte> table, DensityPoints<Space::kHost> points,
                      HostSpan<float> pdf);
void evaluate_density(CudaExecutor& executor, const sampling::TableHeader& header,
                      DeviceSpan<const std::byte> table, DensityPoints<Space::kDevice> points,
                      DeviceSpan<float> pdf);

}  // namespace cumulus
