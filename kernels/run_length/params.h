#pragma once

#include <cstdint>

namespace cumulus {

/// What an array of lengths holds, one little-endian unsigned integer for each run.
enum class RunLengthForm {
  kCounts,  ///< Elements of the run.
  kEnds,    ///< Elements of the run and all runs before it: where it ends.
};

struct RunLengthFormat {
  /// Bytes of one element of the array, that is, of one symbol: 1, 2, 3, 4, 6, 8, 12 or 16 (a pixel, say).
  int element_bytes = 1;
  /// Bytes of one length: 4 or 8.
  int length_bytes = 4;
  RunLengthForm form = RunLengthForm::kCounts;
};

struct EncodeRunLengthsParams {
  RunLengthFormat format = {};
  /// Elements of the array, at least 0.
  std::int64_t elements = 0;
  /// Runs end at each multiple of this index, whatever the elements: the length of a row, say. 0: nowhere.
  std::int64_t cut_elements = 0;
  /// Runs that the output arrays have room for.
  std::int64_t max_runs = 0;
};

/// The pieces that cuts make of the array: rows, or images of a batch.
constexpr std::int64_t run_pieces(const EncodeRunLengthsParams& params) {
  const std::int64_t cut = params.cut_elements == 0 ? params.elements : params.cut_elements;
  return params.elements == 0 ? 0 : (params.elements - 1) / cut + 1;
}

struct DecodeRunLengthsParams {
  RunLengthFormat format = {};
  /// Runs, at least 0.
  std::int64_t runs = 0;
  /// Elements that the output array has room for.
  std::int64_t max_elements = 0;
};

}  // namespace cumulus
