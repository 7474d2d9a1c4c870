#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/core/cuda_executor.h"
#include "kernels/summed_area_table/summed_area_table.h"

// Kernels that build the inclusive table of one image of one channel faster than the one for every image,
// where they can. Of checked jobs; false: this one's cannot be built so, and nothing was done.

namespace cumulus::summed_area_table {

/// Images that these kernels are compiled for.
template <class Input>
inline constexpr bool kBuiltFaster = std::is_same_v<Input, std::uint8_t> || std::is_same_v<Input, float>;

/// Of a small image, all of whose tiles are on the GPU at once.
template <class Input, class Sum>
bool build_while_resident(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job);

/// Of bytes, in row panels of whole rows, one for each multiprocessor, which stay there from reading to
/// writing. Rows of image and table begin at multiples of 16 bytes, and have at most 4096 pixels, a multiple
/// of 4.
bool build_in_row_panels(CudaExecutor& executor,
                         const TableJob<std::uint8_t, std::uint32_t, Space::kDevice>& job);

/// In strips from the first row to the last, which are all on the GPU at once, where they keep most of it
/// busy. Rows of image and table begin at multiples of 16 bytes. FLOAT32 -> FLOAT32 and UINT8 -> UINT32.
template <class Input, class Sum>
bool build_in_strips(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job);

/// The same however small the image, in strips of 64 columns whose bands two blocks take alternately, or of
/// 128 with one or two.
template <class Input, class Sum>
bool build_in_strips_of(int columns, int blocks_per_strip, CudaExecutor& executor,
                        const TableJob<Input, Sum, Space::kDevice>& job);

}  // namespace cumulus::summed_area_table
