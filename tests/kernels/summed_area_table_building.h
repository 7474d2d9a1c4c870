#pragma once

#include <gtest/gtest.h>

#include <cstring>
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
  const std::size_t scratch_bytes = build_summed_area_table_scratch_bytes(job, backend.executor().numbers());
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

/// Pixels that a row of the image has to be longer by so that all rows begin at multiples of 16 bytes.
template <class Input>
int padding_to_whole_words(ImageShape shape) {
  constexpr int kPixels = 16 / static_cast<int>(sizeof(Input));
  return static_cast<int>(-shape.width & (kPixels - 1));
}

/// The dense table, built by start(executor, job) into rows that begin at multiples of
/// 16 bytes; what lies between them stays.
template <class Sum, class Input, class Start>
std::vector<Sum> build_aligned(CudaBackend& backend, const TestImage<Input>& image, const Start& start) {
  const std::int64_t stride = (image.width + 3) / 4 * 4;
  const BackendArray<CudaBackend, Input> pixels(backend, image.elements);
  BackendArray<CudaBackend, Sum> sums(backend, static_cast<std::size_t>(image.height * stride));
  TableJob<Input, Sum, Space::kDevice> job;
  job.image = view_of<CudaBackend>(image, pixels.const_span());
  job.sums = {sums.span().data(), image.height, image.width, 1, stride};
  start(backend.executor(), job);
  const std::vector<Sum> padded = sums.to_host();
  std::vector<Sum> table;
  Sum poison;
  std::memset(&poison, 0xA5, sizeof(poison));
  for (std::int64_t y = 0; y < image.height; ++y) {
    const Sum* row = padded.data() + y * stride;
    table.insert(table.end(), row, row + image.width);
    for (std::int64_t x = image.width; x < stride; ++x)
      EXPECT_EQ(std::memcmp(row + x, &poison, sizeof(Sum)), 0);
  }
  return table;
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
