#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cumulus/sampling.h"
#include "kernels/sampling_table/sampling_table.h"

// Tables that the paper's figures draw from, on the CPU.

namespace cumulus::bench {

struct Density {
  std::uint32_t height;
  std::uint32_t width;
  std::vector<float> weights;
};

class DrawnTable {
 public:
  DrawnTable(const Density& density, sampling::Method method,
             sampling::Interpolation interpolation = sampling::Interpolation::kConstant) {
    CpuExecutor executor;
    const SamplingTableParams params{.height = density.height,
                                     .width = density.width,
                                     .projection = sampling::Projection::kPlane,
                                     .interpolation = interpolation,
                                     .method = method};
    bytes_.resize(sampling_table_bytes(params));
    executor.reserve_scratch(sampling_table_scratch_bytes<Space::kHost>(params));
    SamplingTableReport report;
    build_sampling_table(executor,
                         HostImage<const float>(density.weights.data(), params.height, params.width), params,
                         {bytes_.data(), bytes_.size()}, &report);
    view_ = {sampling_table_header(params), reinterpret_cast<const unsigned char*>(bytes_.data())};
  }

  sampling::Sample sample(sampling::FixedPoint2 point) const {
    return sampling::sample(view_, point.x, point.y);
  }
  double density(double u, double v) const {
    return static_cast<double>(sampling::pdf(view_, static_cast<float>(u), static_cast<float>(v)));
  }
  /// The probability of each texel.
  std::vector<double> probabilities() const {
    std::vector<double> all;
    const sampling::TableHeader& header = view_.header;
    for (std::uint32_t y = 0; y < header.height; ++y) {
      for (std::uint32_t x = 0; x < header.width; ++x) {
        const float u = (static_cast<float>(x) + 0.5F) / static_cast<float>(header.width);
        const float v = (static_cast<float>(y) + 0.5F) / static_cast<float>(header.height);
        all.push_back(static_cast<double>(sampling::pdf(view_, u, v)) / (header.width * header.height));
      }
    }
    return all;
  }

 private:
  std::vector<std::byte> bytes_;
  sampling::TableView view_;
};

inline constexpr sampling::Method kBothMethods[] = {SamplingTableParams{}.method, sampling::Method::kAlias};
inline const char* title(sampling::Method method) {
  return method == sampling::Method::kAlias ? "alias table" : "monotone";
}

}  // namespace cumulus::bench
