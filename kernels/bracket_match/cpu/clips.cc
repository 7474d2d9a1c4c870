#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/bracket_match/clips/boxes.h"
#include "kernels/bracket_match/cpu/tiles.h"
#include "kernels/bracket_match/intersect_clips.h"
#include "kernels/core/without_cuda.h"

namespace cumulus {
namespace {

using namespace bracket_match;

struct Box {
  float x0, y0, x1, y1;
};
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr Box kEverywhere = {-kInfinity, -kInfinity, kInfinity, kInfinity};

Box intersection(const Box& a, const Box& b) {
  return {std::max(a.x0, b.x0), std::max(a.y0, b.y0), std::min(a.x1, b.x1), std::min(a.y1, b.y1)};
}
bool has_nan(const Box& box) {
  return std::isnan(box.x0) || std::isnan(box.y0) || std::isnan(box.x1) || std::isnan(box.y1);
}

/// Box after box along the links to the enclosing clips, which point backwards. Tiles go in parallel: a
/// tile's surviving opens are chained within the tile, then the tiles one after the other, each by one link.
template <class Index>
class ClipChains {
 public:
  ClipChains(CpuExecutor& executor, HostSpan<const std::uint8_t> elements, HostSpan<const float> boxes,
             HostSpan<const Index> tops, HostSpan<float> bounds)
      : executor_(executor),
        elements_(elements),
        boxes_(boxes),
        tops_(tops),
        bounds_(bounds),
        count_(static_cast<std::int64_t>(elements.size())),
        tile_count_(host_tiles(count_)),
        below_(executor.scratch<Box>(static_cast<std::size_t>(tile_count_))),
        lowest_top_(executor.scratch<std::int64_t>(static_cast<std::size_t>(tile_count_))) {}

  /// Returns the first wrong element, or -1.
  std::int64_t run() {
    for_each_tile(executor_, tile_count_, [&](std::int64_t tile) { chain_left_opens(tile); });
    for (std::int64_t tile = 0; tile < tile_count_; ++tile) link(tile);
    for_each_tile(executor_, tile_count_, [&](std::int64_t tile) { finish_left_opens(tile); });
    for_each_tile(executor_, tile_count_, [&](std::int64_t tile) { finish_others(tile); });
    return wrong_ == count_ ? -1 : wrong_.load();
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  std::int64_t first_of(std::int64_t tile) const { return tile * kCpuTile; }
  std::int64_t end_of(std::int64_t tile) const { return std::min((tile + 1) * kCpuTile, count_); }
  /// The clip that encloses the element, or that it ends; -1: none.
  std::int64_t link_of(std::int64_t i) const { return i == 0 ? -1 : tops_[at(i - 1)]; }

  Box box(std::int64_t i) const {
    Box box;
    std::memcpy(&box, &boxes_[at(4 * i)], sizeof(box));
    return box;
  }
  Box bound(std::int64_t i) const {
    Box box;
    std::memcpy(&box, &bounds_[at(4 * i)], sizeof(box));
    return box;
  }
  void set_bound(std::int64_t i, const Box& box) { std::memcpy(&bounds_[at(4 * i)], &box, sizeof(box)); }

  /// The begins that the tile leaves on the stack, from the lowest.
  std::vector<std::int64_t> left_opens(std::int64_t tile) const {
    std::vector<std::int64_t> opens;
    for (std::int64_t i = tops_[at(end_of(tile) - 1)]; i >= first_of(tile); i = link_of(i))
      opens.push_back(i);
    std::reverse(opens.begin(), opens.end());
    return opens;
  }

  /// Their bounds within the tile.
  void chain_left_opens(std::int64_t tile) {
    Box local = kEverywhere;
    for (const std::int64_t i : left_opens(tile)) {
      local = intersection(local, box(i));
      set_bound(i, local);
    }
    std::int64_t lowest = link_of(first_of(tile));
    for (std::int64_t i = first_of(tile); i < end_of(tile); ++i)
      lowest = std::min<std::int64_t>(lowest, tops_[at(i)]);
    lowest_top_[at(tile)] = lowest;
  }

  /// What lies on the stack below all that the tile has pushed: a begin of an earlier tile at its top.
  void link(std::int64_t tile) {
    const std::int64_t top = lowest_top_[at(tile)];
    below_[at(tile)] = top < 0 ? kEverywhere : intersection(bound(top), below_[at(top / kCpuTile)]);
  }

  void finish_left_opens(std::int64_t tile) {
    for (const std::int64_t i : left_opens(tile)) set_bound(i, intersection(bound(i), below_[at(tile)]));
  }

  /// Their links lead to begins that earlier tiles have left, or to earlier elements of this tile: all
  /// finished.
  void finish_others(std::int64_t tile) {
    const std::vector<std::int64_t> left = left_opens(tile);
    auto next_left = left.begin();
    for (std::int64_t i = first_of(tile); i < end_of(tile); ++i) {
      const std::uint8_t what = elements_[at(i)];
      if (what > kEndClip || (what != kEndClip && has_nan(box(i)))) refuse(i);
      if (next_left != left.end() && *next_left == i) {
        ++next_left;
        continue;
      }
      const std::int64_t clip = link_of(i);
      const Box outer = clip < 0 ? kEverywhere : bound(clip);
      set_bound(i, what == kEndClip ? outer : intersection(box(i), outer));
    }
  }

  void refuse(std::int64_t i) {
    std::int64_t first = wrong_.load();
    while (i < first && !wrong_.compare_exchange_weak(first, i)) {
    }
  }

  CpuExecutor& executor_;
  const HostSpan<const std::uint8_t> elements_;
  const HostSpan<const float> boxes_;
  const HostSpan<const Index> tops_;
  const HostSpan<float> bounds_;
  const std::int64_t count_;
  const std::int64_t tile_count_;
  const HostSpan<Box> below_;
  const HostSpan<std::int64_t> lowest_top_;
  std::atomic<std::int64_t> wrong_ = count_;
};

template <class Index>
void intersect(CpuExecutor& executor, HostSpan<const std::uint8_t> elements, HostSpan<const float> boxes,
               HostSpan<float> bounds, ClipReport* report) {
  const HostSpan<Index> tops = executor.scratch<Index>(elements.size());
  BracketOutputs<Index, Space::kHost> outputs;
  outputs.top = tops;
  match_brackets(executor, elements, clip_table(), {}, outputs, &report->nesting);
  report->wrong_element = ClipChains<Index>(executor, elements, boxes, tops, bounds).run();
}

}  // namespace

void intersect_clips(CpuExecutor& executor, HostSpan<const std::uint8_t> elements,
                     HostSpan<const float> boxes, HostSpan<float> bounds, ClipReport* report) {
  check_boxes("boxes", elements.size(), boxes.size());
  check_boxes("bounds", elements.size(), bounds.size());
  needs_wide_indices(static_cast<std::int64_t>(elements.size()))
      ? intersect<std::int64_t>(executor, elements, boxes, bounds, report)
      : intersect<std::int32_t>(executor, elements, boxes, bounds, report);
}

#if !CUMULUS_WITH_CUDA
void CUMULUS_WITHOUT_CUDA(intersect_clips, DeviceSpan<const std::uint8_t>, DeviceSpan<const float>,
                          DeviceSpan<float>, ClipReport*);
#endif

}  // namespace cumulus
