#pragma once

// The reduction pass: the sums over all weights, where each weight depends on them.

#include <cmath>
#include <cstdint>

#include "kernels/core/cuda_executor.h"
#include "kernels/sampling_table/format/records.h"
#include "kernels/sampling_table/weights/arithmetic.h"

namespace cumulus::sampling_table {

CUMULUS_HOST_DEVICE inline RowReduction row_reduction(std::uint64_t sum, std::uint32_t largest,
                                                      sampling::Projection projection, std::uint32_t y,
                                                      std::uint32_t height) {
  const float share = row_weight(projection, y, height);
  return {row_mass(sum, share), largest, share};
}

CUMULUS_HOST_DEVICE inline std::uint32_t mass_exponent(const RowReduction& row, std::uint32_t width) {
  return mass_exponent(row.mass, row_exponent(row.largest, width));
}

/// The sums over the rows of a layer. All are exact, in any order.
struct LayerReduction {
  std::uint64_t mass = 0;     ///< Of integer_mass.
  std::uint64_t share = 0;    ///< In units of 2^-40, of which row_weight, 2^-15 or more, is a multiple.
  std::uint32_t largest = 0;  ///< Bits of the largest weight.

  /// `heaviest` is the largest mass_exponent of the layer.
  CUMULUS_HOST_DEVICE void add(const RowReduction& row, std::uint32_t width, std::uint32_t heaviest) {
    mass += integer_mass(row.mass, row_exponent(row.largest, width), heaviest);
    share += static_cast<std::uint64_t>(static_cast<double>(row.share) * 0x1p40);
    largest = largest > row.largest ? largest : row.largest;
  }
  CUMULUS_HOST_DEVICE void add(const LayerReduction& other) {
    mass += other.mass;
    share += other.share;
    largest = largest > other.largest ? largest : other.largest;
  }

  /// The mean of the weights, each counted with its share of the plane or of the sphere.
  CUMULUS_HOST_DEVICE float mean(std::uint32_t width, std::uint32_t heaviest) const {
    // A unit of integer_mass is 2^(heaviest - 1244): 5 bits dropped from a mantissa of 53 (exponent bias
    // 1023 + 52), times 2^(exponent - 174) of integer_weight.
    const double ratio = static_cast<double>(static_cast<std::int64_t>(mass)) /
                         (static_cast<double>(width) * static_cast<double>(static_cast<std::int64_t>(share)));
    return static_cast<float>(std::ldexp(ratio, static_cast<int>(heaviest) - 1244 + 40));
  }
};

/// How the weights of a layer are to be changed.
CUMULUS_HOST_DEVICE inline WeightAdjustment adjustment_of(const LayerReduction& layer, std::uint32_t width,
                                                          std::uint32_t heaviest, bool mis_compensation,
                                                          bool uniform_if_all_zero) {
  WeightAdjustment adjustment;
  if (layer.largest == 0) {
    adjustment.otherwise = uniform_if_all_zero ? 1.0F : 0.0F;
  } else if (mis_compensation) {
    const float mean = layer.mean(width, heaviest);
    if (float_bits(mean) < layer.largest) adjustment.taken_off = mean;
  }
  return adjustment;
}

/// Fills `adjustments`, one a layer; `rows` is scratch, one for each row of all layers.
template <class T>
void reduce_weights(CudaExecutor& executor, DeviceImage<const T> weights, const SamplingTableParams& params,
                    DeviceSpan<RowReduction> rows, DeviceSpan<WeightAdjustment> adjustments);

}  // namespace cumulus::sampling_table
