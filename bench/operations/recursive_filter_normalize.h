#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/harness/bench.h"
#include "kernels/recursive_filter/normalize.h"
#include "kernels/recursive_filter/recursive_filter.h"
#include "tests/cases/recursive_filter_case.h"

// The pass over a filtered image that the boundary "exact" takes.

namespace cumulus::bench {

/// Certainties of each of a line's pixels.
inline std::vector<double> of_all_pixels(const FilteredCertainty& certainty, std::int64_t length) {
  std::vector<double> all(static_cast<std::size_t>(length), 1.0);
  const std::size_t count = certainty.ends.size();
  const std::size_t last = count / 2;
  std::copy(certainty.ends.begin(), certainty.ends.end() - static_cast<std::ptrdiff_t>(last), all.begin());
  std::copy(certainty.ends.end() - static_cast<std::ptrdiff_t>(last), certainty.ends.end(),
            all.end() - static_cast<std::ptrdiff_t>(last));
  return all;
}

template <class T>
std::string verify_normalized(const testing::FilterImage& image, const FilteredCertainties& certainties,
                              const std::vector<T>& result) {
  const auto [height, width, channels] = image.shape;
  const std::vector<double> of_rows = of_all_pixels(certainties.y, height);
  const std::vector<double> of_columns = of_all_pixels(certainties.x, width);
  const double share = std::is_same_v<T, Float16> ? 0x1p-11 * 1.01 : 0x1p-22;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t i = 0; i < width * channels; ++i) {
      const double want = double{image.row(y)[i]} / of_rows[static_cast<std::size_t>(y)] /
                          of_columns[static_cast<std::size_t>(i / channels)];
      const auto got = static_cast<double>(result[static_cast<std::size_t>(y * width * channels + i)]);
      if (std::abs(got - want) <= share * std::abs(want) + 0x1p-25) continue;
      return "row " + std::to_string(y) + ", element " + std::to_string(i) + ": " + std::to_string(got) +
             ", not " + std::to_string(want);
    }
  }
  return "";
}

/// Of what has been filtered into floats; halves are rounded here.
template <class T, class Executor>
void bench_normalize(Runner<Executor>& runner, const std::string& type, testing::FilterShape shape) {
  constexpr Space kSpace = Executor::kSpace;
  std::string name =
      "normalize/" + type + "/" + std::to_string(shape.height) + "x" + std::to_string(shape.width);
  if (shape.channels > 1) name += "x" + std::to_string(shape.channels);
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const testing::FilterImage image = make_filter_image(shape, testing::FilterPattern::kRandom);
  const Array<float, Executor> filtered(executor, image.elements);
  const Array<T, Executor> result(executor, image.elements.size());
  const AxisFilter axis = deriche_filter(8, 0, FilterBoundary::kZero);
  const FilteredCertainties certainties{filtered_certainty(axis, shape.height),
                                        filtered_certainty(axis, shape.width)};
  const FilterImages<const float, kSpace> from(
      ImageView<const float, kSpace>(filtered.data(), shape.height, shape.width, shape.channels));
  const FilterImages<T, kSpace> to(
      ImageView<T, kSpace>(result.data(), shape.height, shape.width, shape.channels));
  runner.measure({
      .name = name,
      .bytes = image.elements.size() * (sizeof(float) + sizeof(T)),
      .items = static_cast<double>(shape.height * shape.width),
      .unit = "pixels",
      .scratch_bytes = normalize_scratch_bytes<float>(certainties),
      .run = [&] { normalize<float, T>(executor, from, certainties, to); },
      .verify = [&] { return verify_normalized(image, certainties, result.to_host()); },
      .verified_by = "quotients in double, every element",
  });
}

template <class Executor>
void bench_normalize(Runner<Executor>& runner) {
  constexpr std::int64_t kExtents[][2] = {{1080, 1920}, {2160, 3840}, {2048, 4096}, {4096, 8192}};
  for (const auto& [height, width] : kExtents) {
    if (runner.quick() && height > 1080) return;
    for (const std::int64_t channels : {1, 3}) {
      bench_normalize<float>(runner, "f32", {height, width, channels});
      bench_normalize<Float16>(runner, "f32-f16", {height, width, channels});
    }
  }
}

}  // namespace cumulus::bench
