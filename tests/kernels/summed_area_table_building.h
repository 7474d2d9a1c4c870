#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/summed_area_table/summed_area_table.h"
#include "tests/cases/summed_area_table_case.h"
#include "tests/support/executors.h"

// How the tests build tables and go through images.

namespace cumulus::testing {

template <class Backend, class Input>
ImageView<const Input, Backend::kSpace> view_of(const TestImage<Input>& image,
                                                Span<const Input, Backend::kSpace> at) {
  return {at.data(), image.height, image.width, image.channels, image.row_stride};
}

template <class Sum>
struct Tables {
  std::vector<Sum> sums;
  std::vector<Sum> squares;
};

/// Builds the tables of a job (whose image and outputs are filled in here) in fresh, poisoned memory; checks
/// that exactly the stated scratch was taken.
template <class Backend, class Input, class Sum>
Tables<Sum> build_job(Backend& backend, const std::vector<Input>& elements,
                      TableJob<Input, Sum, Backend::kSpace> job, bool squares = false) {
  BackendArray<Backend, Input> pixels(backend, elements);
  const std::int64_t border = job.exclusive ? 1 : 0;
  job.image.data = pixels.const_span().data();
  job.sums = {nullptr, job.image.height + border, job.image.width + border, job.image.channels};
  const auto count = static_cast<std::size_t>(job.planes * job.sums.elements());
  BackendArray<Backend, Sum> sums(backend, count);
  BackendArray<Backend, Sum> sums_of_squares(backend, squares ? count : 0);
  job.sums.data = sums.span().data();
  if (squares) job.squares = sums_of_squares.span().data();
  const std::size_t scratch_bytes = build_summed_area_table_scratch_bytes(job);
  backend.executor().reserve_scratch(scratch_bytes);
  build_summed_area_table(backend.executor(), job);
  EXPECT_EQ(backend.executor().scratch_arena().used_bytes(), scratch_bytes);
  return {sums.to_host(), sums_of_squares.to_host()};
}

template <class Sum, class Backend, class Input>
TableJob<Input, Sum, Backend::kSpace> job_of(const Backend& /*backend*/, const TestImage<Input>& image) {
  TableJob<Input, Sum, Backend::kSpace> job;
  job.image = {nullptr, image.height, image.width, image.channels, image.row_stride};
  return job;
}

/// The plain inclusive table.
template <class Sum, class Backend, class Input>
std::vector<Sum> build(Backend& backend, const TestImage<Input>& image) {
  return build_job(backend, image.elements, job_of<Sum>(backend, image)).sums;
}

inline std::string describe(ImageShape shape, std::int64_t channels, std::int64_t padding,
                            ImagePattern pattern) {
  return std::string(name_of(pattern)) + ", " + std::to_string(shape.height) + " x " +
         std::to_string(shape.width) + " x " + std::to_string(channels) + ", rows padded by " +
         std::to_string(padding);
}

/// Calls check(image) for every shape, number of channels, padding and pattern.
template <class Input, class Check>
void for_every_image(const std::vector<ImageShape>& shapes, const Check& check) {
  for (const ImageShape shape : shapes) {
    for (const int channels : {1, 2, 3, 4}) {
      for (const int padding : {0, channels == 1 ? 16 : 5}) {
        for (const ImagePattern pattern : image_patterns<Input>()) {
          SCOPED_TRACE(describe(shape, channels, padding, pattern));
          check(make_image<Input>(shape, channels, padding, pattern));
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

}  // namespace cumulus::testing
