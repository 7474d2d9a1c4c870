#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/core/float16.h"

// The pairs of summed_area_table.h, for explicit instantiation.
#define CUMULUS_SUMMED_AREA_TABLE_BYTE_PAIRS(instantiate) \
  instantiate(std::uint8_t, std::uint32_t);               \
  instantiate(std::uint8_t, std::uint64_t)
#define CUMULUS_SUMMED_AREA_TABLE_FLOAT_PAIRS(instantiate) \
  instantiate(float, float);                               \
  instantiate(float, double)
#define CUMULUS_SUMMED_AREA_TABLE_SHORT_PAIRS(instantiate) \
  instantiate(std::uint16_t, std::uint32_t);               \
  instantiate(std::uint16_t, std::uint64_t)
#define CUMULUS_SUMMED_AREA_TABLE_HALF_PAIRS(instantiate) \
  instantiate(Float16, float);                            \
  instantiate(Float16, double)
#define CUMULUS_SUMMED_AREA_TABLE_OTHER_PAIRS(instantiate) \
  instantiate(std::uint32_t, std::uint64_t);               \
  instantiate(std::int32_t, std::int64_t);                 \
  instantiate(double, double)
#define CUMULUS_SUMMED_AREA_TABLE_PAIRS(instantiate)  \
  CUMULUS_SUMMED_AREA_TABLE_BYTE_PAIRS(instantiate);  \
  CUMULUS_SUMMED_AREA_TABLE_FLOAT_PAIRS(instantiate); \
  CUMULUS_SUMMED_AREA_TABLE_SHORT_PAIRS(instantiate); \
  CUMULUS_SUMMED_AREA_TABLE_HALF_PAIRS(instantiate);  \
  CUMULUS_SUMMED_AREA_TABLE_OTHER_PAIRS(instantiate)

// The functions of summed_area_table_queries.h for every type, likewise.
// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types
#define CUMULUS_TABLE_QUERIES_OF_SUM(Executor, kSpace, Span, Sum)                               \
  template void sum_rectangles(Executor&, const TableView<Sum, kSpace>&, Span<const Rectangle>, \
                               const RectangleResults<Sum, kSpace>&, RectangleReport*)
#define CUMULUS_TABLE_QUERIES_OF_IMAGE(Executor, kSpace, Input) \
  template void filter_box(Executor&, const BoxFilterJob<Input, kSpace>&)
#define CUMULUS_TABLE_QUERIES(Executor, kSpace, Span)                  \
  CUMULUS_TABLE_QUERIES_OF_SUM(Executor, kSpace, Span, std::uint32_t); \
  CUMULUS_TABLE_QUERIES_OF_SUM(Executor, kSpace, Span, std::uint64_t); \
  CUMULUS_TABLE_QUERIES_OF_SUM(Executor, kSpace, Span, std::int64_t);  \
  CUMULUS_TABLE_QUERIES_OF_SUM(Executor, kSpace, Span, float);         \
  CUMULUS_TABLE_QUERIES_OF_SUM(Executor, kSpace, Span, double);        \
  CUMULUS_TABLE_QUERIES_OF_IMAGE(Executor, kSpace, std::uint8_t);      \
  CUMULUS_TABLE_QUERIES_OF_IMAGE(Executor, kSpace, std::uint16_t);     \
  CUMULUS_TABLE_QUERIES_OF_IMAGE(Executor, kSpace, std::uint32_t);     \
  CUMULUS_TABLE_QUERIES_OF_IMAGE(Executor, kSpace, std::int32_t);      \
  CUMULUS_TABLE_QUERIES_OF_IMAGE(Executor, kSpace, Float16);           \
  CUMULUS_TABLE_QUERIES_OF_IMAGE(Executor, kSpace, float);             \
  CUMULUS_TABLE_QUERIES_OF_IMAGE(Executor, kSpace, double)

// NOLINTEND(bugprone-macro-parentheses)

namespace cumulus::summed_area_table {

/// What sums are computed in: signed ones as unsigned, which may wrap around.
template <class Sum>
using Accumulator = std::conditional_t<std::is_same_v<Sum, std::int64_t>, std::uint64_t, Sum>;

/// What is summed of a pixel.
enum class Term {
  kValue,   // the pixel
  kSquare,  // its square
  kOffset,  // the pixel less its channel's offset
};

template <Term kTerm, class Sum, class Input>
CUMULUS_HOST_DEVICE Sum summand(Input pixel, Sum offset) {
  const Sum value = static_cast<Sum>(pixel);
  if constexpr (kTerm == Term::kSquare) return value * value;
  if constexpr (kTerm == Term::kOffset) return value - offset;
  return value;
}

}  // namespace cumulus::summed_area_table
