#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/run_length/run_length.h"
#include "tests/cases/run_length_case.h"
#include "tests/support/executors.h"

// Sizes that 32 bits do not count: gigabytes of memory, seconds of time.

namespace cumulus {
namespace {

using testing::BackendArray;
using testing::EncodedRuns;
using testing::length_at;
using testing::runs_of;

constexpr RunLengthFormat kCounts32{1, 4, RunLengthForm::kCounts};
constexpr RunLengthFormat kCounts64{1, 8, RunLengthForm::kCounts};
constexpr RunLengthFormat kEnds32{1, 4, RunLengthForm::kEnds};

struct Found {
  EncodeRunLengthsReport report;
  std::vector<std::byte> lengths;
};

template <class Backend>
class RunLengthLarge : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(RunLengthLarge, testing::Backends, testing::BackendNames);

/// Zeros, but for element 7; in memory of the backend's, uploaded by pieces.
template <class Backend>
Memory<Backend::kSpace> zeros_with_a_one(Backend& backend, std::int64_t count) {
  Memory<Backend::kSpace> memory = backend.executor().allocate(static_cast<std::size_t>(count));
  std::vector<std::byte> piece(std::size_t{1} << 26);
  for (std::size_t first = 0; first < memory.bytes(); first += piece.size()) {
    const std::size_t size = std::min(piece.size(), memory.bytes() - first);
    piece[7] = std::byte{first == 0};
    backend.executor().upload({piece.data(), size}, {memory.data() + first, size});
    backend.executor().synchronize();
  }
  return memory;
}

// More than 2^32 elements: 4 GiB on the backend.
TYPED_TEST(RunLengthLarge, SlowReportsOrCutsRunsBeyond32Bits) {
  const std::int64_t count = (std::int64_t{1} << 32) + 100000;
  const auto elements = zeros_with_a_one(this->backend(), count);
  const auto encode_as = [&](const RunLengthFormat& format, std::int64_t cut) {
    const EncodeRunLengthsParams params{
        .format = format, .elements = count, .cut_elements = cut, .max_runs = 10};
    BackendArray<TypeParam, std::byte> symbols(this->backend(), 10);
    BackendArray<TypeParam, std::byte> lengths(this->backend(),
                                               10 * static_cast<std::size_t>(format.length_bytes));
    this->executor().reserve_scratch(
        encode_run_lengths_scratch_bytes<TypeParam::kSpace>(params, this->executor().numbers()));
    Found encoding;
    encode_run_lengths(this->executor(), params, {elements.data(), elements.bytes()},
                       {symbols.span(), lengths.span()}, &encoding.report);
    encoding.lengths = lengths.to_host();
    return encoding;
  };
  EXPECT_EQ(encode_as(kCounts32, 0).report.unfitting_run, 2);
  EXPECT_EQ(encode_as(kEnds32, 0).report.unfitting_run, 2);
  const std::int64_t late_cut = (std::int64_t{1} << 32) + 50000;  // the long run has another behind it
  EXPECT_EQ(encode_as(kCounts32, late_cut).report.unfitting_run, 2);
  EXPECT_EQ(encode_as(kEnds32, late_cut).report.unfitting_run, 2);
  const Found wide = encode_as(kCounts64, 0);
  EXPECT_EQ(wide.report.runs, 3);
  EXPECT_EQ(wide.report.unfitting_run, -1);
  EXPECT_EQ(length_at(wide.lengths, 8, 2), static_cast<std::uint64_t>(count - 8));
  // Almost as long as a count of 32 bits can say. Only from 2^32 on the parts of the array are searched for
  // what does not fit, and this run ends where such a part begins.
  constexpr std::int64_t kEndOfLongest = std::int64_t{1} << 32;
  const Found longest = encode_as(kCounts32, kEndOfLongest);
  EXPECT_EQ(longest.report.unfitting_run, -1);
  EXPECT_EQ(length_at(longest.lengths, 4, 2), static_cast<std::uint64_t>(kEndOfLongest - 8));
  const Found cut = encode_as(kCounts32, std::int64_t{1} << 31);
  EXPECT_EQ(cut.report.runs, 5);
  EXPECT_EQ(length_at(cut.lengths, 4, 4), 100000u);
}

TYPED_TEST(RunLengthLarge, SlowDecodesMoreThan32BitsOfElements) {
  const std::int64_t count = (std::int64_t{1} << 32) + 100000;
  const EncodedRuns runs = runs_of<std::uint64_t>({static_cast<std::uint64_t>(count - 3), 3});
  const DecodeRunLengthsParams params{kCounts64, 2, count};
  const Memory<TypeParam::kSpace> elements = this->executor().allocate(static_cast<std::size_t>(count));
  BackendArray<TypeParam, std::byte> symbols(this->backend(), runs.symbols);
  BackendArray<TypeParam, std::byte> lengths(this->backend(), runs.lengths);
  this->executor().reserve_scratch(decode_run_lengths_scratch_bytes<TypeParam::kSpace>(params));
  DecodeRunLengthsReport report;
  decode_run_lengths(this->executor(), params, symbols.const_span(), lengths.const_span(),
                     {elements.data(), elements.bytes()}, &report);
  std::vector<std::byte> tail(8);
  this->executor().download({elements.data() + count - 8, 8}, {tail.data(), 8});
  this->executor().synchronize();
  EXPECT_EQ(report.elements, count);
  EXPECT_EQ(tail, (std::vector<std::byte>{{}, {}, {}, {}, {}, std::byte{1}, std::byte{1}, std::byte{1}}));
}

/// Host memory of zeros, of which pages that nobody writes to take no place.
class ZeroPages {
 public:
  explicit ZeroPages(std::size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                   0)) {}
  ~ZeroPages() { munmap(data_, bytes_); }
  ZeroPages(const ZeroPages&) = delete;
  ZeroPages& operator=(const ZeroPages&) = delete;

  bool mapped() const { return data_ != MAP_FAILED; }
  HostSpan<std::byte> span() const { return {static_cast<std::byte*>(data_), bytes_}; }

 private:
  std::size_t bytes_;
  void* data_;
};

/// Runs of length 0 but for these: one at the beginning, three beyond 2^31.
template <class Backend>
void expect_runs_at_both_ends(Backend& backend, Span<std::byte, Backend::kSpace> symbols,
                              Span<std::byte, Backend::kSpace> lengths) {
  const auto runs = static_cast<std::int64_t>(symbols.size());
  const EncodedRuns first = runs_of<std::uint32_t>({1});
  const EncodedRuns last = runs_of<std::uint32_t>({2, 0, 3});
  const std::vector<std::byte> last_symbols = {std::byte{7}, std::byte{8}, std::byte{9}};
  backend.executor().upload({first.lengths.data(), 4}, lengths.subspan(0, 4));
  backend.executor().upload({last.lengths.data(), 12}, lengths.subspan(lengths.size() - 12, 12));
  backend.executor().upload({last_symbols.data(), 3}, symbols.subspan(symbols.size() - 3, 3));

  const DecodeRunLengthsParams params{kCounts32, runs, 6};
  BackendArray<Backend, std::byte> elements(backend, std::size_t{6});
  backend.executor().reserve_scratch(decode_run_lengths_scratch_bytes<Backend::kSpace>(params));
  DecodeRunLengthsReport report;
  decode_run_lengths(backend.executor(), params, symbols, lengths, elements.span(), &report);
  EXPECT_EQ(
      elements.to_host(),
      (std::vector<std::byte>{{}, std::byte{7}, std::byte{7}, std::byte{9}, std::byte{9}, std::byte{9}}));
  EXPECT_EQ(report.elements, 6);
}

constexpr std::size_t kManyRuns = (std::size_t{1} << 31) + 1000;

TEST(RunLengthLargeOnTheCpu, SlowDecodesMoreThan31BitsOfRuns) {
  testing::CpuBackend backend;
  const ZeroPages symbols(kManyRuns);
  const ZeroPages lengths(kManyRuns * 4);
  ASSERT_TRUE(symbols.mapped() && lengths.mapped());
  expect_runs_at_both_ends(backend, symbols.span(), lengths.span());
}

using RunLengthLargeOnCuda = testing::OnEveryBackend<testing::CudaBackend>;

// 10 GiB of device memory.
TEST_F(RunLengthLargeOnCuda, SlowDecodesMoreThan31BitsOfRuns) {
  const auto zeros = [this](std::size_t bytes) {
    Memory<Space::kDevice> memory = executor().allocate(bytes);
    const std::vector<std::byte> piece(std::size_t{1} << 26);
    for (std::size_t first = 0; first < bytes; first += piece.size()) {
      const std::size_t size = std::min(piece.size(), bytes - first);
      executor().upload({piece.data(), size}, {memory.data() + first, size});
    }
    executor().synchronize();
    return memory;
  };
  const Memory<Space::kDevice> symbols = zeros(kManyRuns);
  const Memory<Space::kDevice> lengths = zeros(kManyRuns * 4);
  expect_runs_at_both_ends<testing::CudaBackend>(backend(), {symbols.data(), kManyRuns},
                                                 {lengths.data(), kManyRuns * 4});
}

}  // namespace
}  // namespace cumulus
