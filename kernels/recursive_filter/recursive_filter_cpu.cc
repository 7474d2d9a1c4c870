#include <algorithm>
#include <memory>
#include <type_traits>

#include "kernels/core/div.h"
#include "kernels/core/fresh_pages.h"
#include "kernels/core/parallel.h"
#include "kernels/core/row_pieces.h"
#include "kernels/core/without_cuda.h"
#include "kernels/recursive_filter/check.h"
#include "kernels/recursive_filter/cpu/apply.h"
#include "kernels/recursive_filter/cpu/group_filter.h"
#include "kernels/recursive_filter/cpu/line_groups.h"
#include "kernels/recursive_filter/cpu/nearest_float16.h"
#include "kernels/recursive_filter/math/line.h"

// Rows first, from the image to the result, then columns in place.

namespace cumulus {
namespace {

using namespace recursive_filter;

template <class T>
std::int64_t image_bytes(const HostImage<T>& image) {
  return image.elements() * static_cast<std::int64_t>(sizeof(T));
}

template <class Vectors, int Order, class Real, class T>
void filter_rows(CpuExecutor& executor, const AxisPlan& axis, const HostImage<const T>& image,
                 const HostImage<T>& filtered) {
  const LinePlan<Order, Real> plan(axis);
  const std::int64_t groups = divide_up(image.height, kLanes);
  const std::int64_t grain =
      std::max<std::int64_t>(1, kGrainPixels / (image.width * image.channels * kLanes));
  const auto rows_of = [](auto view, std::int64_t group) {
    view.data = view.row(group * kLanes);
    view.height = std::min<std::int64_t>(kLanes, view.height - group * kLanes);
    return view;
  };
  using Filter = GroupFilter<Vectors, Order, Real, T>;
  if (kLanes * image.width * image.channels * static_cast<std::int64_t>(sizeof(T)) >= kLongGroupBytes) {
    using Long = LongGroup<RowGroup<Vectors, T>, Filter>;
    touch_pages(executor, filtered);
    return filter_long_groups<Long>(executor, groups, [&](std::int64_t group) {
      return std::make_unique<Long>(plan, rows_of(image, group), rows_of(filtered, group));
    });
  }
  parallel_ranges(executor, groups, grain, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      RowGroup<Vectors, T> group(rows_of(image, i), rows_of(filtered, i));
      Filter(plan, group).run();
    }
  });
}

/// `filtered` may be the image itself.
template <class Vectors, int Order, class Real, class T>
void filter_columns(CpuExecutor& executor, const AxisPlan& axis, const HostImage<const T>& image,
                    const HostImage<T>& filtered) {
  const LinePlan<Order, Real> plan(axis);
  const std::int64_t columns = image.width * image.channels;
  const std::int64_t sets = divide_up(columns, kLanes);
  const std::int64_t tasks = kTasksPerThread * executor.threads();
  const std::int64_t group_sets = std::clamp<std::int64_t>(divide_up(sets, tasks), 1, kMaxSets);
  const std::int64_t group_columns = group_sets * kLanes;
  const std::int64_t groups = divide_up(columns, group_columns);
  const auto source = [&](std::int64_t group) {
    return LaneBlock<const T>{image.data + group * group_columns, image.row_stride};
  };
  const auto target = [&](std::int64_t group) {
    return LaneBlock<T>{filtered.data + group * group_columns, filtered.row_stride};
  };
  const auto columns_of = [&](std::int64_t group) {
    return static_cast<int>(std::min(group_columns, columns - group * group_columns));
  };
  // A group goes through all rows, each of which may begin a large page.
  if (image.data != filtered.data && image_bytes(filtered) >= kLongGroupBytes)
    touch_pages(executor, filtered);
  using Filter = GroupFilter<Vectors, Order, Real, T>;
  if (group_columns * image.height * static_cast<std::int64_t>(sizeof(T)) >= kLongGroupBytes) {
    using Long = LongGroup<ColumnGroup<T>, Filter>;
    return filter_long_groups<Long>(executor, groups, [&](std::int64_t group) {
      return std::make_unique<Long>(plan, source(group), target(group), image.height, columns_of(group));
    });
  }
  parallel_ranges(executor, groups, 1, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      ColumnGroup<T> group(source(i), target(i), image.height, columns_of(i));
      Filter(plan, group).run();
    }
  });
}

/// `filtered` may be the image itself.
template <class Vectors, int Order, class Real, class T>
void filter_axes(CpuExecutor& executor, const HostImage<const T>& image, const AxisPlan& y, const AxisPlan& x,
                 const HostImage<T>& filtered) {
  if (x.identity) return filter_columns<Vectors, Order, Real>(executor, y, image, filtered);
  filter_rows<Vectors, Order, Real>(executor, x, image, filtered);
  executor.check_interrupt();
  if (y.identity) return;
  filter_columns<Vectors, Order, Real>(executor, y, HostImage<const T>(filtered), filtered);
}

struct Plans {
  Precision precision;
  int order;
  AxisPlan y, x;
};

template <class Vectors, class T>
void filter_image(CpuExecutor& executor, const Plans& plans, const HostImage<const T>& image,
                  const HostImage<T>& filtered) {
  executor.check_interrupt();
  with_order(plans.order, [&]<int Order>() {
    if constexpr (std::is_same_v<T, float>) {
      if (plans.precision == Precision::kSingle) {
        return filter_axes<Vectors, Order, float>(executor, image, plans.y, plans.x, filtered);
      }
    }
    filter_axes<Vectors, Order, double>(executor, image, plans.y, plans.x, filtered);
  });
}

/// Filters as floats, in scratch memory, and rounds once.
template <class Vectors>
void filter_halves(CpuExecutor& executor, const Plans& plans, const HostImage<const Float16>& image,
                   const HostImage<Float16>& filtered, HostSpan<float> scratch) {
  const HostImage<float> floats(scratch.data(), image.height, image.width, image.channels);
  const std::int64_t numbers = floats.row_stride;
  parallel_row_pieces(executor, image.height, numbers, kGrainPixels, [&](const RowPiece& piece) {
    const Float16* row = image.row(piece.row);
    std::copy(row + piece.first, row + piece.end, floats.row(piece.row) + piece.first);
  });
  filter_image<Vectors, float>(executor, plans, floats, floats);
  parallel_row_pieces(executor, image.height, numbers, kGrainPixels, [&](const RowPiece& piece) {
    const float* row = floats.row(piece.row);
    std::transform(row + piece.first, row + piece.end, filtered.row(piece.row) + piece.first,
                   nearest_float16);
  });
}

}  // namespace

template <class Vectors, class T>
RecursiveFilterRun recursive_filter::apply_with(CpuExecutor& executor,
                                                FilterImages<const T, Space::kHost> images,
                                                const RecursiveFilter& filter,
                                                FilterImages<T, Space::kHost> filtered) {
  check_views(images, filtered);
  executor.check_interrupt();
  const Precision precision = std::is_same_v<T, double> ? Precision::kDouble : precision_for(filter);
  const int order = kernel_order(filter);
  const Plans plans{precision, order, plan_axis(filter.y, images.first.height, order, precision),
                    plan_axis(filter.x, images.first.width, order, precision)};
  if constexpr (std::is_same_v<T, Float16>) {
    const auto scratch = executor.scratch<float>(static_cast<std::size_t>(images.first.elements()));
    for (std::int64_t i = 0; i < images.count; ++i) {
      filter_halves<Vectors>(executor, plans, images[i], filtered[i], scratch);
    }
  } else {
    for (std::int64_t i = 0; i < images.count; ++i) {
      filter_image<Vectors, T>(executor, plans, images[i], filtered[i]);
    }
  }
  return {RecursiveFilterMethod::kLines};
}

template <class T>
RecursiveFilterRun apply_recursive_filter(CpuExecutor& executor, FilterImages<const T, Space::kHost> images,
                                          const RecursiveFilter& filter,
                                          FilterImages<T, Space::kHost> filtered,
                                          const RecursiveFilterChoice& /*choice*/) {
  return with_wide_vectors(
      [&]<class Vectors>() { return apply_with<Vectors, T>(executor, images, filter, filtered); });
}

template <class T>
void add_scaled(CpuExecutor& executor, HostSpan<const T> addend, double weight, HostSpan<T> values) {
  check_addend(addend, values);
  executor.check_interrupt();
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto factor = static_cast<Real>(weight);
  const auto count = static_cast<std::int64_t>(values.size());
  parallel_ranges(executor, count, kGrainPixels, [&](std::int64_t first, std::int64_t end) {
    std::transform(addend.data() + first, addend.data() + end, values.data() + first, values.data() + first,
                   [factor](T add, T value) {
                     const Real sum = static_cast<Real>(add) + factor * static_cast<Real>(value);
                     if constexpr (std::is_same_v<T, Float16>) {
                       return nearest_float16(sum);
                     } else {
                       return sum;
                     }
                   });
  });
}

#define CUMULUS_INSTANTIATE(T)                                                   \
  template RecursiveFilterRun recursive_filter::apply_with<PlainVectors, T>(     \
      CpuExecutor&, FilterImages<const T, Space::kHost>, const RecursiveFilter&, \
      FilterImages<T, Space::kHost>);                                            \
  template RecursiveFilterRun apply_recursive_filter<T>(                         \
      CpuExecutor&, FilterImages<const T, Space::kHost>, const RecursiveFilter&, \
      FilterImages<T, Space::kHost>, const RecursiveFilterChoice&);              \
  template void add_scaled<T>(CpuExecutor&, HostSpan<const T>, double, HostSpan<T>);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
CUMULUS_INSTANTIATE(double)
#undef CUMULUS_INSTANTIATE

#if !CUMULUS_WITH_CUDA
#define CUMULUS_INSTANTIATE(T)                                                                           \
  template <>                                                                                            \
  RecursiveFilterRun CUMULUS_WITHOUT_CUDA(apply_recursive_filter, FilterImages<const T, Space::kDevice>, \
                                          const RecursiveFilter&, FilterImages<T, Space::kDevice>,       \
                                          const RecursiveFilterChoice&);                                 \
  template <>                                                                                            \
  void CUMULUS_WITHOUT_CUDA(add_scaled, DeviceSpan<const T>, double, DeviceSpan<T>);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
CUMULUS_INSTANTIATE(double)
#undef CUMULUS_INSTANTIATE
#endif

}  // namespace cumulus
