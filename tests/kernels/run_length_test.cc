#include "kernels/run_length/run_length.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/cases/run_length_case.h"
#include "tests/support/encoded_run_lengths.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::BackendArray;
using testing::bytes_of;
using testing::encode;
using testing::encode_right;
using testing::EncodedRuns;
using testing::Encoding;
using testing::for_every_array;
using ::testing::HasSubstr;
using testing::kRunArrayLengths;
using testing::kRunElementBytes;
using testing::kRunFormats;
using testing::kRunPatterns;
using testing::length_at;
using testing::make_run_array;
using testing::naive_encode;
using testing::naive_run_starts;
using testing::params_for;
using testing::RunArray;
using testing::RunPattern;
using testing::runs_of;

struct Decoding {
  DecodeRunLengthsReport report;
  std::vector<std::byte> elements;
};

template <class Backend>
Decoding decode(Backend& backend, const EncodedRuns& runs, const DecodeRunLengthsParams& params) {
  BackendArray<Backend, std::byte> symbols(backend, runs.symbols);
  BackendArray<Backend, std::byte> lengths(backend, runs.lengths);
  BackendArray<Backend, std::byte> elements(backend,
                                            bytes_of(params.max_elements, params.format.element_bytes));
  const std::size_t scratch_bytes = decode_run_lengths_scratch_bytes<Backend::kSpace>(params);
  backend.executor().reserve_scratch(scratch_bytes);
  Decoding decoding;
  decode_run_lengths(backend.executor(), params, symbols.const_span(), lengths.const_span(), elements.span(),
                     &decoding.report);
  EXPECT_EQ(backend.executor().scratch_arena().used_bytes(), scratch_bytes);
  decoding.elements = elements.to_host();
  return decoding;
}

bool untouched(const std::vector<std::byte>& bytes, std::size_t first = 0) {
  return std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(first), bytes.end(),
                     [](std::byte byte) { return byte == std::byte{0xA5}; });
}

template <class Backend>
class RunLength : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(RunLength, testing::Backends, testing::BackendNames);

TYPED_TEST(RunLength, EncodesEveryArrayAsTheOracleDoes) {
  for_every_array(kRunArrayLengths, [&](const RunArray& array) {
    const auto params = params_for(array, kRunFormats[0]);
    const Encoding encoding = encode_right(this->backend(), array, params);
    EXPECT_TRUE(untouched(encoding.symbols, bytes_of(encoding.report.runs, array.element_bytes)));
  });
}

TYPED_TEST(RunLength, EncodesEveryForm) {
  for_every_array({1, 517, 8193, 40000}, [&](const RunArray& array) {
    for (const RunLengthFormat& format : kRunFormats) {
      encode_right(this->backend(), array, params_for(array, format));
    }
  });
}

TYPED_TEST(RunLength, CutsRunsAtTheEndsOfRows) {
  for_every_array({1, 517, 8193, 40000}, [&](const RunArray& array) {
    for (const std::int64_t row : {1, 2, 31, 32, 33, 100, 4096, 8191, 39999, 1000000}) {
      auto params = params_for(array, kRunFormats[0]);
      params.cut_elements = row;
      SCOPED_TRACE(row);
      encode_right(this->backend(), array, params);
    }
  });
}

TYPED_TEST(RunLength, CountsRunsThatThereIsNoRoomFor) {
  for_every_array({1, 8193, 40000}, [&](const RunArray& array) {
    for (const std::int64_t room : {0, 1, 77, 9000}) {
      auto params = params_for(array, kRunFormats[0]);
      params.max_runs = room;
      SCOPED_TRACE(room);
      encode_right(this->backend(), array, params);
    }
  });
}

TYPED_TEST(RunLength, TellsApartWhatDiffersByBitsOnly) {
  const std::vector<std::uint32_t> bits = {0x7FC00000, 0x7FC00000, 0x7FC00001, 0, 0x80000000, 0x80000000, 0};
  RunArray array(4, static_cast<std::int64_t>(bits.size()));
  std::memcpy(array.bytes.data(), bits.data(), array.bytes.size());
  const Encoding encoding = encode(this->backend(), array, params_for(array, kRunFormats[0]));
  EXPECT_EQ(encoding.report.runs, 5);
  EXPECT_EQ(length_at(encoding.lengths, 4, 0), 2u);
  EXPECT_EQ(length_at(encoding.lengths, 4, 3), 2u);
}

TYPED_TEST(RunLength, EncodesAMillionElementsOverManyTiles) {
  for (const RunPattern pattern : kRunPatterns) {
    for (const int element_bytes : {1, 4}) {
      const RunArray array = make_run_array(pattern, element_bytes, 3000017, 5);
      SCOPED_TRACE(name_of(pattern));
      encode_right(this->backend(), array, params_for(array, kRunFormats[0]));
    }
  }
}

TYPED_TEST(RunLength, DecodesAMillionElementsOverManyTiles) {
  for (const RunPattern pattern : kRunPatterns) {
    for (const int element_bytes : {1, 3, 4}) {
      const RunArray array = make_run_array(pattern, element_bytes, 3000017, 5);
      SCOPED_TRACE(name_of(pattern));
      const auto format = params_for(array, kRunFormats[0]).format;
      const EncodedRuns runs = naive_encode(array, format, 0);
      const auto count = static_cast<std::int64_t>(runs.lengths.size() / 4);
      const Decoding decoding = decode(this->backend(), runs, {format, count, array.count});
      EXPECT_EQ(verify_decode(array, decoding.elements), "");
    }
  }
}

TYPED_TEST(RunLength, DecodesEveryArray) {
  for_every_array(kRunArrayLengths, [&](const RunArray& array) {
    const auto format = params_for(array, kRunFormats[0]).format;
    const EncodedRuns runs = naive_encode(array, format, 0);
    const auto count = static_cast<std::int64_t>(runs.lengths.size() / 4);
    const Decoding decoding = decode(this->backend(), runs, {format, count, array.count});
    EXPECT_EQ(decoding.report.outcome, DecodeRunLengthsReport::Outcome::kDecoded);
    EXPECT_EQ(decoding.report.elements, array.count);
    EXPECT_EQ(verify_decode(array, decoding.elements), "");
  });
}

TYPED_TEST(RunLength, DecodesEveryFormAndCutRuns) {
  for_every_array({1, 517, 8193, 140001}, [&](const RunArray& array) {
    for (RunLengthFormat format : kRunFormats) {
      format.element_bytes = array.element_bytes;
      const EncodedRuns runs = naive_encode(array, format, 100);
      const auto count = static_cast<std::int64_t>(runs.symbols.size()) / array.element_bytes;
      const Decoding decoding = decode(this->backend(), runs, {format, count, array.count});
      EXPECT_EQ(decoding.report.elements, array.count);
      EXPECT_EQ(verify_decode(array, decoding.elements), "");
    }
  });
}

TYPED_TEST(RunLength, DecodesRunsOfNothing) {
  for (const std::size_t empty_runs : {1, 255, 256, 257, 5000, 20000}) {
    std::vector<std::uint32_t> counts(empty_runs, 0);
    counts.front() = 3;
    counts.insert(counts.end(), 40000, 1);
    counts.insert(counts.end(), empty_runs, 0);
    const EncodedRuns runs = runs_of(counts);
    const auto count = static_cast<std::int64_t>(counts.size());
    const Decoding decoding = decode(this->backend(), runs, {kRunFormats[0], count, 50000});
    ASSERT_EQ(decoding.report.elements, 40003);
    for (std::size_t i = 0; i < 40003; ++i) {
      const std::size_t run = i < 3 ? 0 : i - 3 + empty_runs;
      ASSERT_EQ(decoding.elements[i], static_cast<std::byte>(run)) << i;
    }
    EXPECT_TRUE(untouched(decoding.elements, 40003));
  }
}

TYPED_TEST(RunLength, DecodesRunsThatAddUpToAnything) {
  std::mt19937 random(3);
  std::vector<std::uint32_t> counts;
  std::vector<std::byte> elements;
  for (const std::uint32_t sum : std::vector<std::uint32_t>{256, 257, 288, 991, 992, 993, 994, 1025, 2049,
                                                            1048575, 1048831, 256, 700}) {
    const std::size_t first = counts.size();
    counts.resize(first + 256, 1);
    const std::uint32_t most = sum > 4096 ? sum : 1 + sum / 40;
    for (std::uint32_t left = sum - 256; left > 0;) {
      const std::uint32_t more =
          std::min<std::uint32_t>(left, 1 + static_cast<std::uint32_t>(random()) % most);
      counts[first + random() % 256] += more;
      left -= more;
    }
    for (std::size_t run = first; run < counts.size(); ++run)
      elements.insert(elements.end(), counts[run], static_cast<std::byte>(run));
  }
  const auto runs = static_cast<std::int64_t>(counts.size());
  const auto count = static_cast<std::int64_t>(elements.size());
  EXPECT_EQ(decode(this->backend(), runs_of(counts), {kRunFormats[0], runs, count}).elements, elements);
}

TYPED_TEST(RunLength, DecodesNothing) {
  EXPECT_EQ(decode(this->backend(), {}, {kRunFormats[0], 0, 10}).report.elements, 0);
  EXPECT_EQ(decode(this->backend(), runs_of<std::uint32_t>({0, 0}), {kRunFormats[0], 2, 0}).report.elements,
            0);
}

TYPED_TEST(RunLength, WritesNothingWhereRunsAreTooLong) {
  using Outcome = DecodeRunLengthsReport::Outcome;
  const EncodedRuns small = runs_of<std::uint32_t>({5, 6, 7});
  const Decoding decoding = decode(this->backend(), small, {kRunFormats[0], 3, 17});
  EXPECT_EQ(decoding.report.outcome, Outcome::kTooLong);
  EXPECT_EQ(decoding.report.elements, 18);
  EXPECT_TRUE(untouched(decoding.elements));
  EXPECT_EQ(decode(this->backend(), small, {kRunFormats[0], 3, 0}).report.outcome, Outcome::kTooLong);
  EXPECT_EQ(decode(this->backend(), small, {kRunFormats[0], 3, 18}).report.outcome, Outcome::kDecoded);
}

TYPED_TEST(RunLength, DoesNotOverflowWithHostileLengths) {
  using Outcome = DecodeRunLengthsReport::Outcome;
  std::vector<std::uint64_t> counts(3000, ~std::uint64_t{0});
  const Decoding decoding = decode(this->backend(), runs_of(counts), {kRunFormats[1], 3000, 100});
  EXPECT_EQ(decoding.report.outcome, Outcome::kTooLong);
  EXPECT_EQ(decoding.report.elements, std::int64_t{1} << 62);
  EXPECT_TRUE(untouched(decoding.elements));
  counts = {std::uint64_t{1} << 63, std::uint64_t{1} << 63};  // add up to 0 modulo 2^64
  EXPECT_EQ(decode(this->backend(), runs_of(counts), {kRunFormats[1], 2, 100}).report.outcome,
            Outcome::kTooLong);
  EXPECT_EQ(decode(this->backend(), runs_of(counts), {kRunFormats[3], 2, 100}).report.outcome,
            Outcome::kTooLong);
}

TYPED_TEST(RunLength, NamesTheFirstEndThatDescends) {
  using Outcome = DecodeRunLengthsReport::Outcome;
  std::vector<std::uint32_t> ends;
  for (std::uint32_t i = 0; i < 10000; ++i) ends.push_back(2 * i);
  ends[7777] = 1;
  ends[9000] = 1;
  const Decoding decoding = decode(this->backend(), runs_of(ends), {kRunFormats[2], 10000, 100000});
  EXPECT_EQ(decoding.report.outcome, Outcome::kDescendingEnds);
  EXPECT_EQ(decoding.report.run, 7777);
  EXPECT_TRUE(untouched(decoding.elements));
}

TYPED_TEST(RunLength, RefusesArraysThatDoNotFit) {
  const Span<const std::byte, TypeParam::kSpace> none;
  const auto text_of = [&](const EncodeRunLengthsParams& params) -> std::string {
    EncodeRunLengthsReport report;
    try {
      encode_run_lengths(this->executor(), params, none, {}, &report);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(text_of({.format = {5}}), HasSubstr("elements have 5 bytes"));
  EXPECT_THAT(text_of({.format = {1, 2}}), HasSubstr("lengths have 2 bytes"));
  EXPECT_THAT(text_of({.elements = 3}), HasSubstr("elements has 0 bytes; 3 of 1 bytes each are right"));
  EXPECT_THAT(text_of({.max_runs = -1}), HasSubstr("symbols has 0 bytes"));
  EXPECT_THAT(text_of({.cut_elements = -1}), HasSubstr("cut_elements is -1"));
  EXPECT_EQ(text_of({}), "accepted");
  DecodeRunLengthsReport report;
  EXPECT_THROW(decode_run_lengths(this->executor(), {.runs = 1}, none, none, {}, &report),
               std::invalid_argument);
}

struct Always : Interrupt {
  bool requested() const override { return true; }
};

TYPED_TEST(RunLength, DoesNotStartForACallerWhoHasLeft) {
  Always always;
  this->executor().set_interrupt(&always);
  const RunArray array = make_run_array(RunPattern::kTen, 1, 100);
  EXPECT_THROW(encode(this->backend(), array, params_for(array, kRunFormats[0])), Interrupted);
  EXPECT_THROW(decode(this->backend(), runs_of<std::uint32_t>({1}), {kRunFormats[0], 1, 1}), Interrupted);
}

TEST(RunLengthOnTheCpu, EncodesArraysOfNearlyWholePieces) {
  testing::CpuBackend backend;
  for (const int element_bytes : kRunElementBytes) {
    const std::int64_t piece = run_length::piece_elements(element_bytes);
    for (const RunPattern pattern : {RunPattern::kConstant, RunPattern::kShortRuns, RunPattern::kMixed}) {
      for (const std::int64_t count :
           {piece - 1, piece, piece + 1, 3 * piece - 63, 3 * piece, 3 * piece + 1}) {
        const RunArray array = make_run_array(pattern, element_bytes, count);
        for (const std::int64_t cut : {std::int64_t{0}, piece, piece + 1, 2 * piece}) {
          SCOPED_TRACE(std::string(name_of(pattern)) + ", " + std::to_string(count) + " elements of " +
                       std::to_string(element_bytes) + " bytes, cut at " + std::to_string(cut));
          auto params = params_for(array, kRunFormats[0]);
          params.cut_elements = cut;
          encode_right(backend, array, params);
        }
      }
    }
  }
}

TEST(RunLengthOnTheCpu, DoesNotDependOnTheNumberOfThreads) {
  const RunArray array = make_run_array(RunPattern::kMixed, 2, 1000003);
  const auto params = params_for(array, kRunFormats[0]);
  std::vector<std::vector<std::byte>> lengths;
  for (const int threads : {1, 2, 5}) {
    CpuExecutor executor(threads);
    std::vector<std::byte> symbols(bytes_of(params.max_runs, 2));
    lengths.emplace_back(bytes_of(params.max_runs, 4));
    EncodeRunLengthsReport report;
    encode_run_lengths(executor, params, {array.bytes.data(), array.bytes.size()},
                       {{symbols.data(), symbols.size()}, {lengths.back().data(), lengths.back().size()}},
                       &report);
    EXPECT_EQ(verify_encode(array, params, report, symbols, lengths.back()), "");
  }
  EXPECT_TRUE(lengths[0] == lengths[1]);
  EXPECT_TRUE(lengths[0] == lengths[2]);
}

TEST(RunLengthVerifier, RefusesOneWrongSymbolLengthCountOrByte) {
  testing::CpuBackend backend;
  const RunArray array = make_run_array(RunPattern::kShortRuns, 4, 1000);
  const auto params = params_for(array, kRunFormats[0]);
  const Encoding right = encode(backend, array, params);
  const auto verify = [&](const Encoding& encoding) {
    return verify_encode(array, params, encoding.report, encoding.symbols, encoding.lengths);
  };
  EXPECT_EQ(verify(right), "");
  Encoding wrong = right;
  wrong.symbols[41] ^= std::byte{1};
  EXPECT_THAT(verify(wrong), HasSubstr("the symbol of run 10"));
  wrong = right;
  wrong.lengths[20] ^= std::byte{1};
  EXPECT_THAT(verify(wrong), HasSubstr("the length of run 5"));
  wrong = right;
  wrong.report.runs -= 1;
  EXPECT_NE(verify(wrong), "");
  wrong.symbols = array.bytes;
  wrong.symbols[777] ^= std::byte{1};
  EXPECT_THAT(verify_decode(array, wrong.symbols), HasSubstr("byte 777"));
}

}  // namespace
}  // namespace cumulus
