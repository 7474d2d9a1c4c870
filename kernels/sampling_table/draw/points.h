#pragma once

#include <cstdint>

#include "cumulus/sampling.h"
#include "kernels/sampling_table/sampling_table.h"

namespace cumulus::sampling_table {

/// The points of a DrawParameters, on host and device.
class PointSource {
 public:
  explicit PointSource(const DrawParameters& parameters)
      : sequence_(parameters.sequence),
        first_index_(static_cast<std::uint64_t>(parameters.first_index)),
        total_(static_cast<std::uint64_t>(parameters.total > 0 ? parameters.total
                                                               : parameters.first_index + parameters.count)),
        seed_(parameters.seed),
        shift_(sampling::digital_shift(parameters.seed)) {}

  /// Those from the begin-th on.
  PointSource from(std::int64_t begin) const {
    PointSource rest = *this;
    rest.first_index_ += static_cast<std::uint64_t>(begin);
    return rest;
  }

  /// The i-th of the points that are drawn.
  CUMULUS_HOST_DEVICE sampling::FixedPoint2 point(std::int64_t i) const {
    const auto index = static_cast<std::uint32_t>(first_index_ + static_cast<std::uint64_t>(i));
    switch (sequence_) {
      case PointSequence::kHammersley:
        return sampling::shifted_point(sampling::hammersley_point(index, total_), shift_);
      case PointSequence::kRandom:
        return sampling::random_point(index, seed_);
      case PointSequence::kSobol:
        break;
    }
    return sampling::shifted_point(sampling::sobol_point(index), shift_);
  }

 private:
  PointSequence sequence_;
  std::uint64_t first_index_;
  std::uint64_t total_;
  std::uint64_t seed_;
  sampling::FixedPoint2 shift_;
};

template <Space S>
sampling::TableView view_of(const sampling::TableHeader& header, Span<const std::byte, S> table,
                            std::uint32_t layer) {
  return {header, reinterpret_cast<const unsigned char*>(table.data()), layer};
}

/// Points of the caller's own.
struct GivenPoints {
  const sampling::FixedPoint2* points;

  GivenPoints from(std::int64_t begin) const { return {points + begin}; }

  CUMULUS_HOST_DEVICE sampling::FixedPoint2 point(std::int64_t i) const {
#if defined(__CUDA_ARCH__)  // in one piece, past the first cache, which has the table to keep
    if (reinterpret_cast<std::uintptr_t>(points) % sizeof(uint2) == 0) {
      sampling::FixedPoint2 point;
      asm("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
          : "=r"(point.x), "=r"(point.y)
          : "l"(points + i));
      return point;
    }
#endif
    return points[i];
  }
};

/// `direction` null: not wanted.
struct SampleArrays {
  float* position;
  float* direction;
  float* pdf;

  SampleArrays from(std::int64_t begin) const {
    return {position + 2 * begin, direction == nullptr ? nullptr : direction + 3 * begin, pdf + begin};
  }
};

template <Space S>
SampleArrays sample_arrays(const DrawnSamples<S>& samples) {
  return {samples.position.data(), samples.direction.empty() ? nullptr : samples.direction.data(),
          samples.pdf.data()};
}

CUMULUS_HOST_DEVICE inline void store_sample(const sampling::Sample& drawn, std::int64_t i,
                                             const SampleArrays& arrays) {
  arrays.position[2 * i] = drawn.u;
  arrays.position[2 * i + 1] = drawn.v;
  arrays.pdf[i] = drawn.pdf;
  if (arrays.direction == nullptr) return;
  for (int axis = 0; axis < 3; ++axis) arrays.direction[3 * i + axis] = drawn.direction[axis];
}

/// The density at the i-th of the points with so many coordinates.
CUMULUS_HOST_DEVICE inline float density_at(const sampling::TableView& table, const float* coordinates,
                                            int dimensions, std::int64_t i) {
  const float* point = coordinates + dimensions * i;
  return dimensions == 3 ? sampling::pdf(table, point) : sampling::pdf(table, point[0], point[1]);
}

}  // namespace cumulus::sampling_table
