#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/run_length/run_length.h"

// Run-length coding: arrays, generator, oracle, verifiers, bytes moved. For tests and benchmarks.

namespace cumulus::testing {

/// Every size of an element: 1- to 8-byte types with 1 to 4 channels, at most 16 bytes.
inline const std::vector<int> kRunElementBytes = {1, 2, 3, 4, 6, 8, 12, 16};

/// None, one, primes, one more and one less than a word of head flags, than a warp's part and than a tile of
/// either backend, and several tiles with a rest.
inline const std::vector<std::int64_t> kRunArrayLengths = {
    0,    1,    2,    3,    31,   32,   33,    127,   517,   1023,  1024,  1025,  2047,  2048,
    2049, 4095, 4097, 8191, 8192, 8193, 16383, 16384, 16385, 24577, 32768, 70001, 140001};

enum class RunPattern {
  kConstant,      // one run
  kCoin,          // each element 0 or 1
  kTen,           // one of ten
  kAllDifferent,  // no two neighbours are equal; they differ in one byte
  kShortRuns,     // of 7 elements on average
  kMiddleRuns,    // of 64
  kLongRuns,      // of 4096
  kMixed,         // stretches of all kinds
};

inline const std::vector<RunPattern> kRunPatterns = {
    RunPattern::kConstant,  RunPattern::kCoin,       RunPattern::kTen,      RunPattern::kAllDifferent,
    RunPattern::kShortRuns, RunPattern::kMiddleRuns, RunPattern::kLongRuns, RunPattern::kMixed};

inline const char* name_of(RunPattern pattern) {
  switch (pattern) {
    case RunPattern::kConstant:
      return "constant";
    case RunPattern::kCoin:
      return "random-2";
    case RunPattern::kTen:
      return "random-10";
    case RunPattern::kAllDifferent:
      return "all-different";
    case RunPattern::kShortRuns:
      return "runs-of-7";
    case RunPattern::kMiddleRuns:
      return "runs-of-64";
    case RunPattern::kLongRuns:
      return "runs-of-4096";
    case RunPattern::kMixed:
      return "mixed";
  }
  return "?";
}

/// An array of elements of any size, on the host.
struct RunArray {
  int element_bytes = 1;
  std::int64_t count = 0;
  std::vector<std::byte> bytes;

  RunArray(int bytes_each, std::int64_t elements)
      : element_bytes(bytes_each),
        count(elements),
        bytes(static_cast<std::size_t>(elements) * static_cast<std::size_t>(bytes_each)) {}

  const std::byte* at(std::int64_t i) const { return bytes.data() + i * element_bytes; }
  bool equal(std::int64_t i, std::int64_t j) const {
    return std::memcmp(at(i), at(j), static_cast<std::size_t>(element_bytes)) == 0;
  }
  /// Symbol number `value`, below 250: different numbers differ in one byte, or in two.
  void set(std::int64_t i, std::uint64_t value) {
    const auto each = static_cast<std::uint64_t>(element_bytes);
    std::byte* element = bytes.data() + i * element_bytes;
    std::memset(element, 0x5A, static_cast<std::size_t>(each));
    element[value % each] = static_cast<std::byte>(0x5A + value / each + 1);
  }
};

/// The chance in 2^32 that an element begins a run.
inline std::uint64_t head_chance(RunPattern pattern, std::int64_t i) {
  constexpr std::uint64_t kAlways = std::uint64_t{1} << 32;
  switch (pattern) {
    case RunPattern::kConstant:
      return 0;
    case RunPattern::kShortRuns:
      return kAlways / 7;
    case RunPattern::kMiddleRuns:
      return kAlways / 64;
    case RunPattern::kLongRuns:
      return kAlways / 4096;
    case RunPattern::kMixed: {
      constexpr std::uint64_t kChances[] = {kAlways, kAlways / 4096, kAlways / 3, 0, kAlways / 50};
      return kChances[i / 3001 % 5];
    }
    default:
      return kAlways;
  }
}

inline RunArray make_run_array(RunPattern pattern, int element_bytes, std::int64_t count,
                               std::uint32_t seed = 1) {
  RunArray array(element_bytes, count);
  std::mt19937 random(seed);
  std::uint64_t value = 17;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t draw = random();
    switch (pattern) {
      case RunPattern::kCoin:
        value = draw >> 31;
        break;
      case RunPattern::kTen:
        value = draw % 10;
        break;
      default:
        if (draw < head_chance(pattern, i)) value = (value + 1 + draw % 199) % 200;
    }
    array.set(i, value);
  }
  return array;
}

/// The serial oracle: where the runs begin, by the plain loop, and the array's end.
inline std::vector<std::int64_t> naive_run_starts(const RunArray& array, std::int64_t cut_elements) {
  std::vector<std::int64_t> starts;
  for (std::int64_t i = 0; i < array.count; ++i) {
    const bool cut = cut_elements > 0 && i % cut_elements == 0;
    if (i == 0 || cut || !array.equal(i, i - 1)) starts.push_back(i);
  }
  starts.push_back(array.count);
  return starts;
}

inline std::uint64_t length_at(const std::vector<std::byte>& lengths, int length_bytes, std::size_t i) {
  std::uint64_t length = 0;
  std::memcpy(&length, lengths.data() + i * static_cast<std::size_t>(length_bytes),
              static_cast<std::size_t>(length_bytes));
  return length;
}

/// The runs of an array, as its encoding in params.format should be: exactly sized.
struct EncodedRuns {
  std::vector<std::byte> symbols;
  std::vector<std::byte> lengths;
};

inline EncodedRuns naive_encode(const RunArray& array, const RunLengthFormat& format,
                                std::int64_t cut_elements) {
  const std::vector<std::int64_t> starts = naive_run_starts(array, cut_elements);
  EncodedRuns runs;
  for (std::size_t r = 0; r + 1 < starts.size(); ++r) {
    runs.symbols.insert(runs.symbols.end(), array.at(starts[r]), array.at(starts[r]) + array.element_bytes);
    const std::int64_t length =
        format.form == RunLengthForm::kCounts ? starts[r + 1] - starts[r] : starts[r + 1];
    const auto* length_bytes = reinterpret_cast<const std::byte*>(&length);
    runs.lengths.insert(runs.lengths.end(), length_bytes, length_bytes + format.length_bytes);
  }
  return runs;
}

/// Runs of single bytes: lengths of symbols 0, 1, 2, ...
template <class Length>
EncodedRuns runs_of(const std::vector<Length>& lengths) {
  EncodedRuns runs;
  for (std::size_t i = 0; i < lengths.size(); ++i) runs.symbols.push_back(static_cast<std::byte>(i));
  const auto* bytes = reinterpret_cast<const std::byte*>(lengths.data());
  runs.lengths.assign(bytes, bytes + lengths.size() * sizeof(Length));
  return runs;
}

/// Compares the first report.runs runs, or as many as there was room for, with the oracle: exactly. Empty
/// if they agree, otherwise the first difference in words.
inline std::string verify_encode(const RunArray& array, const EncodeRunLengthsParams& params,
                                 const EncodeRunLengthsReport& report, const std::vector<std::byte>& symbols,
                                 const std::vector<std::byte>& lengths) {
  const std::vector<std::int64_t> starts = naive_run_starts(array, params.cut_elements);
  const auto runs = static_cast<std::int64_t>(starts.size()) - 1;
  if (report.runs != runs) return std::to_string(report.runs) + " runs, not " + std::to_string(runs);
  if (report.unfitting_run != -1)
    return "run " + std::to_string(report.unfitting_run) + " is said not to fit";
  for (std::int64_t r = 0; r < std::min(runs, params.max_runs); ++r) {
    const auto i = static_cast<std::size_t>(r);
    const std::byte* symbol = symbols.data() + r * array.element_bytes;
    if (std::memcmp(symbol, array.at(starts[i]), static_cast<std::size_t>(array.element_bytes)) != 0) {
      return "the symbol of run " + std::to_string(r) + " is wrong";
    }
    const std::int64_t right =
        params.format.form == RunLengthForm::kCounts ? starts[i + 1] - starts[i] : starts[i + 1];
    const std::uint64_t length = length_at(lengths, params.format.length_bytes, i);
    if (length != static_cast<std::uint64_t>(right)) {
      return "the length of run " + std::to_string(r) + " is " + std::to_string(length) + ", not " +
             std::to_string(right);
    }
  }
  return "";
}

/// Compares decoded bytes with the array. Empty if they agree, otherwise the first difference in words.
inline std::string verify_decode(const RunArray& array, const std::vector<std::byte>& decoded) {
  if (decoded.size() < array.bytes.size()) return "only " + std::to_string(decoded.size()) + " bytes";
  for (std::size_t i = 0; i < array.bytes.size(); ++i) {
    if (decoded[i] != array.bytes[i]) {
      return "byte " + std::to_string(i) + " is " + std::to_string(std::to_integer<int>(decoded[i])) +
             ", not " + std::to_string(std::to_integer<int>(array.bytes[i]));
    }
  }
  return "";
}

/// Bytes that any method must move, either way: the array on one side, its runs on the other.
inline std::size_t run_length_bytes(const RunLengthFormat& format, std::int64_t elements, std::int64_t runs) {
  return static_cast<std::size_t>(elements * format.element_bytes +
                                  runs * (format.element_bytes + format.length_bytes));
}

}  // namespace cumulus::testing
