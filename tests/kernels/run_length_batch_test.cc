// Pieces of an array, and images taken by columns: what batches of masks are encoded with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/run_length/run_length.h"
#include "kernels/run_length/transpose/transpose.h"
#include "tests/cases/run_length_case.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::BackendArray;
using ::testing::HasSubstr;
using testing::kRunElementBytes;
using testing::kRunPatterns;
using testing::make_run_array;
using testing::naive_run_starts;
using testing::RunArray;
using testing::RunPattern;

template <class Backend>
class RunLengthBatch : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(RunLengthBatch, testing::Backends, testing::BackendNames);

/// The first run of each piece, by the plain loop, and the number of runs.
std::vector<std::int64_t> naive_first_runs(const RunArray& array, std::int64_t cut) {
  const std::vector<std::int64_t> starts = naive_run_starts(array, cut);
  std::vector<std::int64_t> first_runs;
  for (std::size_t run = 0; run + 1 < starts.size(); ++run) {
    if (cut > 0 ? starts[run] % cut == 0 : run == 0) first_runs.push_back(static_cast<std::int64_t>(run));
  }
  first_runs.push_back(static_cast<std::int64_t>(starts.size()) - 1);
  return first_runs;
}

template <class Backend>
std::vector<std::int64_t> first_runs_of(Backend& backend, const RunArray& array, std::int64_t cut,
                                        std::int64_t max_runs) {
  const EncodeRunLengthsParams params{.format = {array.element_bytes, 4, RunLengthForm::kCounts},
                                      .elements = array.count,
                                      .cut_elements = cut,
                                      .max_runs = max_runs};
  BackendArray<Backend, std::byte> elements(backend, array.bytes);
  BackendArray<Backend, std::byte> symbols(backend, static_cast<std::size_t>(max_runs * array.element_bytes));
  BackendArray<Backend, std::byte> lengths(backend, static_cast<std::size_t>(max_runs * 4));
  BackendArray<Backend, std::int64_t> first_runs(backend, static_cast<std::size_t>(run_pieces(params) + 1));
  backend.executor().reserve_scratch(
      encode_run_lengths_scratch_bytes<Backend::kSpace>(params, backend.executor().numbers()));
  EncodeRunLengthsReport report;
  encode_run_lengths(backend.executor(), params, elements.const_span(),
                     {symbols.span(), lengths.span(), first_runs.span()}, &report);
  const std::vector<std::int64_t> found = first_runs.to_host();
  EXPECT_EQ(verify_encode(array, params, report, symbols.to_host(), lengths.to_host()), "");
  return found;
}

TYPED_TEST(RunLengthBatch, KnowsTheFirstRunOfEveryPiece) {
  for (const int element_bytes : kRunElementBytes) {
    for (const RunPattern pattern : kRunPatterns) {
      for (const std::int64_t count : {1, 33, 8192, 70001}) {
        const RunArray array = make_run_array(pattern, element_bytes, count);
        for (const std::int64_t cut : {0, 1, 3, 31, 64, 100, 8192, 50000, 1000000}) {
          if (cut == 1 && count > 10000) continue;
          SCOPED_TRACE(std::string(name_of(pattern)) + ", " + std::to_string(count) + " elements of " +
                       std::to_string(element_bytes) + " bytes, cut at " + std::to_string(cut));
          ASSERT_EQ(first_runs_of(this->backend(), array, cut, count), naive_first_runs(array, cut));
        }
      }
    }
  }
}

TYPED_TEST(RunLengthBatch, KnowsThemEvenWhereThereIsNoRoomForTheRuns) {
  const RunArray array = make_run_array(RunPattern::kTen, 1, 40000);
  EXPECT_EQ(first_runs_of(this->backend(), array, 100, 7), naive_first_runs(array, 100));
}

// More than 2^31 runs: 2 GiB on the backend; there is room for the first three of them only.
TYPED_TEST(RunLengthBatch, SlowCountsMoreThan31BitsOfRuns) {
  const std::int64_t count = (std::int64_t{1} << 31) + 1000;
  const Memory<TypeParam::kSpace> elements = this->executor().allocate(static_cast<std::size_t>(count));
  std::vector<std::byte> piece(std::size_t{1} << 26);
  for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = static_cast<std::byte>(i % 2);
  for (std::size_t first = 0; first < elements.bytes(); first += piece.size()) {
    const std::size_t size = std::min(piece.size(), elements.bytes() - first);
    this->executor().upload({piece.data(), size}, {elements.data() + first, size});
  }
  const std::int64_t cut = std::int64_t{1} << 30;
  const EncodeRunLengthsParams params{.elements = count, .cut_elements = cut, .max_runs = 3};
  BackendArray<TypeParam, std::byte> symbols(this->backend(), std::size_t{3});
  BackendArray<TypeParam, std::byte> lengths(this->backend(), std::size_t{12});
  BackendArray<TypeParam, std::int64_t> first_runs(this->backend(), std::size_t{4});
  this->executor().reserve_scratch(
      encode_run_lengths_scratch_bytes<TypeParam::kSpace>(params, this->executor().numbers()));
  EncodeRunLengthsReport report;
  encode_run_lengths(this->executor(), params, {elements.data(), elements.bytes()},
                     {symbols.span(), lengths.span(), first_runs.span()}, &report);
  EXPECT_EQ(first_runs.to_host(), (std::vector<std::int64_t>{0, cut, 2 * cut, count}));
  EXPECT_EQ(report.runs, count);
}

TYPED_TEST(RunLengthBatch, AnArrayOfNothingHasNoPieces) {
  EXPECT_EQ(first_runs_of(this->backend(), RunArray(1, 0), 5, 0), std::vector<std::int64_t>{0});
}

TYPED_TEST(RunLengthBatch, RefusesFirstRunsOfTheWrongSize) {
  BackendArray<TypeParam, std::byte> elements(this->backend(), std::size_t{10});
  BackendArray<TypeParam, std::int64_t> first_runs(this->backend(), std::size_t{3});
  EncodeRunLengthsReport report;
  try {
    encode_run_lengths(this->executor(), {.elements = 10, .cut_elements = 5}, elements.const_span(),
                       {{}, {}, first_runs.span().subspan(0, 2)}, &report);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("first_runs has 2 numbers; none, or 3"));
  }
}

template <class Backend>
void expect_turned(Backend& backend, int element_bytes, const std::vector<std::int64_t>& shape) {
  const ImageBatch batch{element_bytes, shape[0], shape[1], shape[2]};
  const RunArray image = make_run_array(RunPattern::kTen, element_bytes, shape[0] * shape[1] * shape[2]);
  BackendArray<Backend, std::byte> from(backend, image.bytes);
  BackendArray<Backend, std::byte> to(backend, image.bytes.size());
  transpose_images(backend.executor(), batch, from.const_span(), to.span());
  const std::vector<std::byte> turned = to.to_host();
  for (std::int64_t i = 0; i < image.count; ++i) {
    const std::int64_t in_image = i % (shape[1] * shape[2]);
    const std::int64_t there = i - in_image + in_image % shape[2] * shape[1] + in_image / shape[2];
    ASSERT_EQ(std::memcmp(turned.data() + there * element_bytes, image.at(i),
                          static_cast<std::size_t>(element_bytes)),
              0)
        << i << " of " << shape[0] << " x " << shape[1] << " x " << shape[2];
  }
}

TYPED_TEST(RunLengthBatch, TurnsEveryShapeOfImage) {
  for (const int element_bytes : kRunElementBytes) {
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{1, 1, 1},
                                                   {1, 1, 100},
                                                   {1, 100, 1},
                                                   {3, 31, 33},
                                                   {2, 32, 64},
                                                   {5, 97, 13},
                                                   {1, 257, 129},
                                                   {2, 501, 350},  // 16-byte pixels go past the caches
                                                   {0, 5, 5},
                                                   {4, 0, 7}}) {
      expect_turned(this->backend(), element_bytes, shape);
    }
  }
}

TYPED_TEST(RunLengthBatch, TurnsBytesInBlocks) { expect_turned(this->backend(), 1, {3, 144, 208}); }

TYPED_TEST(RunLengthBatch, RefusesImagesOfTheWrongSize) {
  BackendArray<TypeParam, std::byte> pixels(this->backend(), std::size_t{12});
  EXPECT_THROW(transpose_images(this->executor(), {1, 1, 3, 3}, pixels.const_span(), pixels.span()),
               std::invalid_argument);
  EXPECT_THROW(transpose_images(this->executor(), {1, -1, 3, -4}, pixels.const_span(), pixels.span()),
               std::invalid_argument);
}

}  // namespace
}  // namespace cumulus
