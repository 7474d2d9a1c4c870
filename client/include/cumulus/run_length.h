#pragma once

#include <cstdint>

#include "cumulus/operation.h"

/// Run-length coding: an array as its runs of equal neighbours, and back. To keep runs in a file, or to
/// look into them without decoding: cumulus/run_length_container.h. (A. Balevic, "Parallel variable-length
/// encoding on GPGPUs", 2009.)
namespace cumulus {

/// What the length of a run is.
enum class RunLengthForm {
  kCounts,  ///< the elements of the run
  kEnds,    ///< the elements of the run and of all runs before it
};

/// The order in which elements follow one another.
enum class RunOrder {
  kRows,     ///< as they lie in memory
  kColumns,  ///< of images, [..., height, width]: image after image, each column by column
};

/// Where runs end besides the places at which the element changes.
enum class RunScope {
  kWholeArray,  ///< nowhere
  kEachLine,    ///< at the end of each row or, with RunOrder::kColumns, column
  kEachImage,   ///< at the end of each image of a batch, [..., height, width]
};

struct EncodeRunLengthsOptions {
  /// The last extent, 1 to 4, is the channels of a pixel of at most 16 bytes, and runs are of pixels.
  bool pixels = false;
  RunOrder order = RunOrder::kRows;
  /// Of lines and images the result also has `first_runs`.
  RunScope scope = RunScope::kWholeArray;
  RunLengthForm form = RunLengthForm::kCounts;
  /// Lengths are uint64 rather than uint32.
  bool wide_lengths = false;
  /// With uint32 counts of the whole array, cut runs at multiples of 2^31 where there are 2^32 elements or
  /// more; otherwise a run that uint32 does not hold is FAILED_PRECONDITION.
  bool split_long_runs = false;
  /// The most runs to make room for; 0: as many as elements. More are FAILED_PRECONDITION.
  std::int64_t max_runs = 0;
};

/// Of `array`, of any shape and element type; elements are compared by their bits. Result: `symbols`, [runs]
/// or, of pixels, [runs, channels], of the array's type, and `lengths`, [runs], uint32 or uint64; with a
/// scope other than the whole array `first_runs`, int64: the first run of each line or image, and the number
/// of runs. FAILED_PRECONDITION: RUN_TOO_LONG, with the first such `run`, or TOO_MANY_RUNS, with all `runs`.
Operation encode_run_lengths(const Source& array, const EncodeRunLengthsOptions& options = {});

struct DecodeRunLengthsOptions {
  /// The most bytes that the array may have; at least 1. Checked before anything is written.
  std::int64_t max_output_bytes = 0;
  bool pixels = false;               ///< as it was encoded
  RunOrder order = RunOrder::kRows;  ///< as it was encoded; kColumns needs `shape`
  RunLengthForm form = RunLengthForm::kCounts;
  /// The array's shape, which the runs have to fill exactly (FAILED_PRECONDITION otherwise). Empty: a list.
  Shape shape = {};
};

/// Of `symbols` and `lengths`, as encode_run_lengths gives them. Result: `array`, of the symbols' type and of
/// `shape`, or a list. FAILED_PRECONDITION: DESCENDING_ENDS, with the first such `run`; WRONG_ELEMENT_COUNT
/// or ARRAY_TOO_LONG, with the `elements` that the runs add up to.
Operation decode_run_lengths(const Source& symbols, const Source& lengths,
                             const DecodeRunLengthsOptions& options);

}  // namespace cumulus
