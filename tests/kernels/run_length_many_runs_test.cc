#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "kernels/run_length/run_length.h"
#include "tests/cases/run_length_case.h"
#include "tests/support/executors.h"

// Decoding of more runs than one warp of the CUDA backend scans the granules of (a quarter of a million), and
// encoding of arrays for which each of its blocks takes several tiles.

namespace cumulus {
namespace {

using testing::BackendArray;
using testing::EncodedRuns;
using testing::kRunElementBytes;
using testing::make_run_array;
using testing::RunArray;
using testing::RunPattern;
using testing::runs_of;
using Outcome = DecodeRunLengthsReport::Outcome;

constexpr std::int64_t kManyRuns = 300000;

struct Decoding {
  DecodeRunLengthsReport report;
  std::vector<std::byte> elements;
};

/// Pinned on a GPU, where kernels then write the report by themselves.
template <class Backend>
HostMemory report_memory() {
  constexpr std::size_t kBytes = sizeof(DecodeRunLengthsReport);
  return Backend::kSpace == Space::kDevice ? allocate_pinned(kBytes) : allocate_host(kBytes);
}

template <class Backend>
Decoding decode(Backend& backend, const EncodedRuns& runs, const DecodeRunLengthsParams& params) {
  BackendArray<Backend, std::byte> symbols(backend, runs.symbols);
  BackendArray<Backend, std::byte> lengths(backend, runs.lengths);
  BackendArray<Backend, std::byte> elements(
      backend,
      static_cast<std::size_t>(params.max_elements) * static_cast<std::size_t>(params.format.element_bytes));
  backend.executor().reserve_scratch(decode_run_lengths_scratch_bytes<Backend::kSpace>(params));
  const HostMemory memory = report_memory<Backend>();
  auto& report = *memory.as<DecodeRunLengthsReport>(1).data();
  decode_run_lengths(backend.executor(), params, symbols.const_span(), lengths.const_span(), elements.span(),
                     &report);
  std::vector<std::byte> decoded = elements.to_host();
  return {report, std::move(decoded)};
}

/// Stretches of 5000 runs: of one element, of none to 20, of 1 to 40, and of 1 to 2 with a few of 100,000.
std::vector<std::uint32_t> counts_of_all_kinds(std::mt19937& random) {
  std::vector<std::uint32_t> counts;
  for (std::int64_t run = 0; run < kManyRuns; ++run) {
    const auto draw = static_cast<std::uint32_t>(random());
    switch (run / 5000 % 4) {
      case 0:
        counts.push_back(1);
        break;
      case 1:
        counts.push_back(draw % 21);
        break;
      case 2:
        counts.push_back(1 + draw % 40);
        break;
      default:
        counts.push_back(draw % 2000 == 0 ? 100000 : 1 + draw % 2);
    }
  }
  return counts;
}

/// An array's runs, their symbols at random, and its elements as a plain loop decodes them.
struct Expanded {
  EncodedRuns runs;
  std::vector<std::byte> elements;
};

Expanded expand(const std::vector<std::uint32_t>& counts, int element_bytes, std::mt19937& random) {
  const auto each = static_cast<std::size_t>(element_bytes);
  Expanded expanded{runs_of(counts), {}};
  expanded.runs.symbols.resize(counts.size() * each);
  for (std::byte& byte : expanded.runs.symbols) byte = static_cast<std::byte>(random());
  for (std::size_t run = 0; run < counts.size(); ++run) {
    const std::byte* symbol = expanded.runs.symbols.data() + run * each;
    for (std::uint32_t i = 0; i < counts[run]; ++i)
      expanded.elements.insert(expanded.elements.end(), symbol, symbol + each);
  }
  return expanded;
}

template <class Backend>
class RunLengthManyRuns : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(RunLengthManyRuns, testing::Backends, testing::BackendNames);

TYPED_TEST(RunLengthManyRuns, BecomeTheArray) {
  std::mt19937 random(11);
  const std::vector<std::uint32_t> counts = counts_of_all_kinds(random);
  for (const int element_bytes : kRunElementBytes) {
    const Expanded expected = expand(counts, element_bytes, random);
    const auto elements = static_cast<std::int64_t>(expected.elements.size()) / element_bytes;
    const Decoding decoding =
        decode(this->backend(), expected.runs, {{element_bytes, 4}, kManyRuns, elements});
    EXPECT_EQ(decoding.report.outcome, Outcome::kDecoded);
    EXPECT_EQ(decoding.report.elements, elements);
    EXPECT_TRUE(decoding.elements == expected.elements) << "elements of " << element_bytes << " bytes";
  }
}

TYPED_TEST(RunLengthManyRuns, OrFewTellWhatTheyAddUpTo) {
  const EncodedRuns few = runs_of<std::uint32_t>({5, 0, 70000});
  const Decoding decoding = decode(this->backend(), few, {{1, 4}, 3, 70006});
  EXPECT_EQ(decoding.report.outcome, Outcome::kDecoded);
  EXPECT_EQ(decoding.report.elements, 70005);
  EXPECT_EQ(decoding.elements[70004], std::byte{2});
  EXPECT_EQ(decoding.elements[70005], std::byte{0xA5});
  EXPECT_EQ(decode(this->backend(), few, {{1, 4}, 3, 70004}).report.outcome, Outcome::kTooLong);
}

TYPED_TEST(RunLengthManyRuns, SayWhichEndDescendsFirst) {
  std::vector<std::uint32_t> ends(kManyRuns);
  for (std::size_t run = 0; run < ends.size(); ++run) ends[run] = static_cast<std::uint32_t>(run) + 1;
  const DecodeRunLengthsParams params{{1, 4, RunLengthForm::kEnds}, kManyRuns, kManyRuns};
  EXPECT_EQ(decode(this->backend(), runs_of(ends), params).report.outcome, Outcome::kDecoded);
  ends[290000] = 3;
  ends[280001] = ends[280000];  // a run of nothing
  ends[280002] = 5;
  const Decoding decoding = decode(this->backend(), runs_of(ends), params);
  EXPECT_EQ(decoding.report.outcome, Outcome::kDescendingEnds);
  EXPECT_EQ(decoding.report.run, 280002);
}

// The second half's threads find ends that descend before the first half's find theirs, at its end.
TEST(RunLengthManyRunsOnTheCpu, SayWhichEndDescendsFirstWhoeverFindsItsOwnBefore) {
  testing::CpuBackend backend;
  constexpr std::uint32_t kRuns = 1U << 22;
  constexpr std::uint32_t kFirst = kRuns / 2 - 1;
  std::vector<std::uint32_t> ends(kRuns);
  for (std::uint32_t run = 0; run < kRuns; ++run) ends[run] = run < kFirst ? run + 1 : kRuns - run;
  ends[kFirst] = kFirst - 1;
  const EncodedRuns runs = runs_of(ends);
  for (int round = 0; round < 10; ++round) {
    const Decoding decoding = decode(backend, runs, {{1, 4, RunLengthForm::kEnds}, kRuns, 100});
    EXPECT_EQ(decoding.report.outcome, Outcome::kDescendingEnds);
    EXPECT_EQ(decoding.report.run, kFirst);
  }
}

TYPED_TEST(RunLengthManyRuns, AddUpToNoMoreThanASumCanBe) {
  const std::vector<std::uint64_t> counts(kManyRuns, ~std::uint64_t{0});
  const Decoding decoding = decode(this->backend(), runs_of(counts), {{1, 8}, kManyRuns, 1000});
  EXPECT_EQ(decoding.report.outcome, Outcome::kTooLong);
  EXPECT_EQ(decoding.report.elements, std::int64_t{1} << 62);
  EXPECT_TRUE(std::all_of(decoding.elements.begin(), decoding.elements.end(),
                          [](std::byte byte) { return byte == std::byte{0xA5}; }));
}

// Every block of the largest GPU takes six tiles or more, and keeps five of them at a time.
TYPED_TEST(RunLengthManyRuns, EncodesArraysOfManyTurns) {
  for (const auto& [element_bytes, count] :
       std::vector<std::pair<int, std::int64_t>>{{1, 32000001}, {4, 16000001}, {12, 6000001}}) {
    SCOPED_TRACE(element_bytes);
    const RunArray array = make_run_array(RunPattern::kMixed, element_bytes, count);
    const EncodeRunLengthsParams params{
        .format = {element_bytes, 4, RunLengthForm::kCounts}, .elements = count, .max_runs = count};
    BackendArray<TypeParam, std::byte> elements(this->backend(), array.bytes);
    BackendArray<TypeParam, std::byte> symbols(this->backend(), array.bytes.size());
    BackendArray<TypeParam, std::byte> lengths(this->backend(), static_cast<std::size_t>(count) * 4);
    this->executor().reserve_scratch(
        encode_run_lengths_scratch_bytes<TypeParam::kSpace>(params, this->executor().numbers()));
    EncodeRunLengthsReport report;
    encode_run_lengths(this->executor(), params, elements.const_span(), {symbols.span(), lengths.span()},
                       &report);
    const std::vector<std::byte> found = symbols.to_host();
    EXPECT_EQ(verify_encode(array, params, report, found, lengths.to_host()), "");
  }
}

}  // namespace
}  // namespace cumulus
