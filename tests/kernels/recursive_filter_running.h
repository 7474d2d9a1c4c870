#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "kernels/recursive_filter/recursive_filter.h"
#include "tests/cases/recursive_filter_case.h"
#include "tests/support/executors.h"

namespace cumulus::testing {

/// Filters `count` images of `shape`, whose rows are `row_stride` elements apart, into fresh, poisoned
/// memory; checks that exactly the stated scratch was taken.
template <class T, class Backend>
std::vector<T> apply_to(Backend& backend, const std::vector<T>& elements, FilterShape shape,
                        std::int64_t row_stride, std::int64_t count, const RecursiveFilter& filter,
                        const RecursiveFilterChoice& choice = {}, RecursiveFilterRun* run = nullptr) {
  const auto [height, width, channels] = shape;
  BackendArray<Backend, T> pixels(backend, elements);
  BackendArray<Backend, T> result(backend, static_cast<std::size_t>(count * height * width * channels));
  const FilterImages<const T, Backend::kSpace> images(
      ImageView<const T, Backend::kSpace>(pixels.const_span().data(), height, width, channels, row_stride),
      count);
  const FilterImages<T, Backend::kSpace> filtered(
      ImageView<T, Backend::kSpace>(result.span().data(), height, width, channels), count);
  const std::size_t scratch_bytes =
      apply_recursive_filter_scratch_bytes(images, filter, backend.executor().numbers(), choice);
  backend.executor().reserve_scratch(scratch_bytes);
  const RecursiveFilterRun done =
      apply_recursive_filter(backend.executor(), images, filter, filtered, choice);
  if (run != nullptr) *run = done;
  EXPECT_EQ(backend.executor().scratch_arena().used_bytes(), scratch_bytes);
  return result.to_host();
}

template <class Backend>
std::vector<float> apply(Backend& backend, const FilterImage& image, const RecursiveFilter& filter,
                         const RecursiveFilterChoice& choice = {}, RecursiveFilterRun* run = nullptr) {
  return apply_to<float>(backend, image.elements, image.shape, image.row_stride, 1, filter, choice, run);
}

inline std::map<std::string, RecursiveFilter> filters_with(FilterBoundary boundary) {
  const auto both = [](const AxisFilter& axis) { return RecursiveFilter{axis, axis}; };
  const std::vector<double> repeated_pole = {-1.6, 0.64};
  const std::vector<double> four_poles = {-0.5, 0.1, -0.2, 0.05};
  const std::vector<double> five_poles = {-0.5, 0.1, -0.2, 0.05, 0.1};
  return {
      {"gaussian 0.5", both(gaussian_filter(0.5, boundary))},
      {"gaussian 3 along y, 1.2 along x", {gaussian_filter(3, boundary), gaussian_filter(1.2, boundary)}},
      {"gaussian 8", both(gaussian_filter(8, boundary))},
      {"gaussian 40", both(gaussian_filter(40, boundary))},
      {"gaussian 5 along y alone", {gaussian_filter(5, boundary), {}}},
      {"gaussian 5 along x alone", {{}, gaussian_filter(5, boundary)}},
      {"deriche 0.7", both(deriche_filter(0.7, 0, boundary))},
      {"deriche 3, second derivative along y",
       {deriche_filter(3, 2, boundary), deriche_filter(5, 0, boundary)}},
      {"deriche 9, first derivative along x",
       {deriche_filter(12, 0, boundary), deriche_filter(9, 1, boundary)}},
      {"deriche 50, second derivative along x",
       {deriche_filter(30, 0, boundary), deriche_filter(50, 2, boundary)}},
      {"first derivative and five poles",
       {deriche_filter(4, 1, boundary), feedback_filter(0.1, five_poles, five_poles, boundary)}},
      {"cubic prefilter", both(bspline_prefilter(3, boundary))},
      {"quintic prefilter", both(bspline_prefilter(5, boundary))},
      {"exponential 0.9, 0.99", {exponential_filter(0.9, boundary), exponential_filter(0.99, boundary)}},
      {"four poles", both(feedback_filter(0.4, four_poles, four_poles, boundary))},
      {"five poles", both(feedback_filter(-0.2, five_poles, five_poles, boundary))},
      {"different directions",
       {feedback_filter(0.01, repeated_pole, five_poles, boundary),
        feedback_filter(0.01, five_poles, repeated_pole, boundary)}},
  };
}

/// Where a GPU has no strips, tiles stand in.
inline RecursiveFilterMethod method_that_runs(RecursiveFilterMethod asked, const DeviceNumbers& device) {
  const bool tiles_stand_in =
      asked == RecursiveFilterMethod::kDecaying && recursive_filter::strip_blocks(device) == 0;
  return tiles_stand_in ? RecursiveFilterMethod::kTiled : asked;
}

}  // namespace cumulus::testing
