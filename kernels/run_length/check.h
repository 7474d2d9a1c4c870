#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/core/views.h"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/transpose/transpose.h"

namespace cumulus::run_length {

[[noreturn]] inline void refuse(const std::string& what) {
  throw std::invalid_argument("run_length: " + what);
}

inline void check_format(const RunLengthFormat& format) {
  switch (format.element_bytes) {
    case 1:
    case 2:
    case 3:
    case 4:
    case 6:
    case 8:
    case 12:
    case 16:
      break;
    default:
      refuse("elements have " + std::to_string(format.element_bytes) +
             " bytes; 1, 2, 3, 4, 6, 8, 12 or 16 is right");
  }
  if (format.length_bytes != 4 && format.length_bytes != 8) {
    refuse("lengths have " + std::to_string(format.length_bytes) + " bytes; 4 or 8 is right");
  }
}

/// Throws unless `array` has exactly count * bytes_each bytes and begins at a multiple of 16.
template <class Byte, Space S>
void check_array(const char* name, const Span<Byte, S>& array, std::int64_t count, int bytes_each) {
  if (count < 0 || array.size() != static_cast<std::size_t>(count) * static_cast<std::size_t>(bytes_each)) {
    refuse(std::string(name) + " has " + std::to_string(array.size()) + " bytes; " + std::to_string(count) +
           " of " + std::to_string(bytes_each) + " bytes each are right");
  }
  if (reinterpret_cast<std::uintptr_t>(array.data()) % 16 != 0) {
    refuse(std::string(name) + " does not begin at a multiple of 16");
  }
}

template <Space S>
void check_encode(const EncodeRunLengthsParams& params, const Span<const std::byte, S>& elements,
                  const EncodedRuns<S>& runs) {
  check_format(params.format);
  if (params.cut_elements < 0) {
    refuse("cut_elements is " + std::to_string(params.cut_elements) + "; at least 0 is right");
  }
  check_array("elements", elements, params.elements, params.format.element_bytes);
  check_array("symbols", runs.symbols, params.max_runs, params.format.element_bytes);
  check_array("lengths", runs.lengths, params.max_runs, params.format.length_bytes);
  const std::int64_t pieces = run_pieces(params);
  if (!runs.first_runs.empty() && runs.first_runs.size() != static_cast<std::size_t>(pieces) + 1) {
    refuse("first_runs has " + std::to_string(runs.first_runs.size()) + " numbers; none, or " +
           std::to_string(pieces + 1) + ", one more than pieces, are right");
  }
}

template <Space S>
void check_decode(const DecodeRunLengthsParams& params, const Span<const std::byte, S>& symbols,
                  const Span<const std::byte, S>& lengths, const Span<std::byte, S>& elements) {
  check_format(params.format);
  check_array("symbols", symbols, params.runs, params.format.element_bytes);
  check_array("lengths", lengths, params.runs, params.format.length_bytes);
  check_array("elements", elements, params.max_elements, params.format.element_bytes);
}

template <Space S>
void check_transpose(const ImageBatch& batch, const Span<const std::byte, S>& from,
                     const Span<std::byte, S>& to) {
  check_format({batch.element_bytes});
  if (batch.images < 0 || batch.height < 0 || batch.width < 0) refuse("an image batch has a negative extent");
  const std::int64_t pixels = batch.images * batch.height * batch.width;
  check_array("from", from, pixels, batch.element_bytes);
  check_array("to", to, pixels, batch.element_bytes);
}

}  // namespace cumulus::run_length
