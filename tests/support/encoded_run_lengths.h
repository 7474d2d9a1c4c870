#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/run_length/run_length.h"
#include "tests/cases/run_length_case.h"
#include "tests/support/executors.h"

// Arrays that a test has encoded on a backend.

namespace cumulus::testing {

inline const std::vector<RunLengthFormat> kRunFormats = {{1, 4, RunLengthForm::kCounts},
                                                         {1, 8, RunLengthForm::kCounts},
                                                         {1, 4, RunLengthForm::kEnds},
                                                         {1, 8, RunLengthForm::kEnds}};

struct Encoding {
  EncodeRunLengthsReport report;
  std::vector<std::byte> symbols;
  std::vector<std::byte> lengths;
};

inline std::size_t bytes_of(std::int64_t count, int each) {
  return static_cast<std::size_t>(count) * static_cast<std::size_t>(each);
}

inline EncodeRunLengthsParams params_for(const RunArray& array, RunLengthFormat format) {
  format.element_bytes = array.element_bytes;
  return {.format = format, .elements = array.count, .max_runs = array.count};
}

/// Encodes into fresh, poisoned memory; checks that exactly the stated scratch was taken.
template <class Backend>
Encoding encode(Backend& backend, const RunArray& array, const EncodeRunLengthsParams& params) {
  BackendArray<Backend, std::byte> elements(backend, array.bytes);
  BackendArray<Backend, std::byte> symbols(backend, bytes_of(params.max_runs, params.format.element_bytes));
  BackendArray<Backend, std::byte> lengths(backend, bytes_of(params.max_runs, params.format.length_bytes));
  const std::size_t scratch_bytes =
      encode_run_lengths_scratch_bytes<Backend::kSpace>(params, backend.executor().numbers());
  backend.executor().reserve_scratch(scratch_bytes);
  Encoding encoding;
  encode_run_lengths(backend.executor(), params, elements.const_span(), {symbols.span(), lengths.span()},
                     &encoding.report);
  EXPECT_EQ(backend.executor().scratch_arena().used_bytes(), scratch_bytes);
  encoding.symbols = symbols.to_host();
  encoding.lengths = lengths.to_host();
  return encoding;
}

/// As encode, and checks the result.
template <class Backend>
Encoding encode_right(Backend& backend, const RunArray& array, const EncodeRunLengthsParams& params) {
  Encoding encoding = encode(backend, array, params);
  EXPECT_EQ(verify_encode(array, params, encoding.report, encoding.symbols, encoding.lengths), "");
  return encoding;
}

/// Calls check(array) for every size of element, pattern and length.
template <class Check>
void for_every_array(const std::vector<std::int64_t>& lengths, const Check& check) {
  for (const int element_bytes : kRunElementBytes) {
    for (const RunPattern pattern : kRunPatterns) {
      for (const std::int64_t length : lengths) {
        SCOPED_TRACE(std::string(name_of(pattern)) + ", " + std::to_string(length) + " elements of " +
                     std::to_string(element_bytes) + " bytes");
        check(make_run_array(pattern, element_bytes, length));
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

}  // namespace cumulus::testing
