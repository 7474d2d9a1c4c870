#pragma once

#include <cstdint>

#include "kernels/recursive_filter/gpu/tile_lines.cuh"
#include "kernels/recursive_filter/gpu/windows.cuh"
#include "kernels/recursive_filter/math/tile_responses.h"
#include "kernels/recursive_filter/planned_filter.h"
#include "kernels/recursive_filter/windows/schedule.h"

// Carries from truncated windows: each tile publishes its zero-state responses, and a tile sums those of
// its neighbours within the decay length, its window, to get its carries. A window that holds the whole
// axis is exact.
//
// The rows' responses have to be those of the image filtered along y. A tile publishes them of its pixels
// filtered along y from zero initial conditions. The columns' carries add to every column the filter's
// response to them, and so to the rows' responses: the cross-axis coupling (the carries' states along x, a
// few numbers a tile) is summed over the window along y first, then over the window along x.

namespace cumulus::recursive_filter {

/// One axis' plan, to filter a tile.
template <int Order, class Real>
struct WindowAxis {
  TileAxis<Order, Real> line;
  ChunkTransitions<Order, Real> causal_chunks, anticausal_chunks;

  explicit WindowAxis(const AxisPlan& plan)
      : line(plan), causal_chunks(plan.causal), anticausal_chunks(plan.anticausal) {}
};

/// Where tiles publish their states: StateLayout's blocks of floats.
struct StateMap {
  float* scratch;
  std::int64_t output;  // from `scratch` to the states in the output, in floats
  StateRows rows;
  std::int64_t tile_columns;
  std::int64_t channels;
  std::int64_t tile_floats;

  __device__ std::int64_t column_stride() const { return channels * tile_floats; }
  __device__ std::int64_t row_stride() const { return tile_columns * column_stride(); }
  /// From a column of tiles to the block of one of its tiles.
  __device__ std::int64_t offset_of(std::int64_t row) const {
    if (row < rows.first) return row * row_stride();
    if (row < rows.end) return output + (row - rows.first) * row_stride();
    return (row - rows.end + rows.first) * row_stride();
  }
  __device__ float* column(std::int64_t image, std::int64_t column_of_tiles, std::int64_t channel) const {
    return scratch + image * rows.in_scratch() * row_stride() + column_of_tiles * column_stride() +
           channel * tile_floats;
  }
  __device__ float* at(const TileIndex& tile) const {
    return column(tile.image, tile.column, tile.channel) + offset_of(tile.row);
  }
};

/// Made once for each plan.
template <int Order, class Real>
struct WindowConstants {
  WindowAxis<Order, Real> y, x;
  WindowTransitions<Order> transitions[2];  // kAlongY, kAlongX
  TileResponses<Order> responses[2];        // of a whole tile, of one in the last row

  WindowConstants(const FilterAxes& plan, const Windows& windows)
      : y(plan.y),
        x(plan.x),
        transitions{{plan.y, windows.y}, {plan.x, windows.x}},
        responses{{plan.y, kTile},
                  {plan.y, plan.y.length - (transitions[kAlongY].tiles - 1) * std::int64_t{kTile}}} {}

  __device__ const TileResponses<Order>& responses_of(const TileIndex& tile) const {
    return responses[tile.row == transitions[kAlongY].tiles - 1 ? 1 : 0];
  }
};

template <int Order, class Real>
struct WindowFilter : WindowConstants<Order, Real> {
  TileImages a;
  StateMap states;
  __device__ bool along_both() const { return a.along_columns && a.along_rows; }
};

/// The columns of tiles whose coupling a block sums along y: those of its window and, where the boundary
/// needs runs over the image, the first and the last that such a run sees.
struct CouplingSlots {
  int tiles, window, column;
  bool sees_all, needs_runs;

  __host__ __device__ int count() const {
    return sees_all ? tiles : 2 * window + 1 + (needs_runs ? 2 * (window + 1) : 0);
  }
  /// Not always a tile of the image.
  __device__ int column_of(int slot) const {
    if (sees_all) return slot;
    if (slot <= 2 * window) return column - window + slot;
    const int beyond = slot - (2 * window + 1);
    return beyond <= window ? beyond : tiles - 2 * (window + 1) + beyond;
  }
  __device__ int slot_of(int other) const {
    if (sees_all) return other;
    if (other >= column - window && other <= column + window) return other - column + window;
    return 2 * window + 1 + (other <= window ? other : other - tiles + 2 * (window + 1));
  }
};
template <int Order>
__host__ __device__ CouplingSlots coupling_slots(const WindowTransitions<Order>& x, std::int64_t column) {
  return {x.tiles, x.window, static_cast<int>(column), x.sees_all(), x.tile.needs_runs};
}

/// A block's shared memory: the tile, and behind it, in floats, responses or carries.
template <int Order>
struct WindowMemory {
  static constexpr int kStates = 2 * Order;
  static constexpr int kFunctionals = StateLayout<Order>::kFunctionals;
  /// To publish: rows of pixels of kTilePitch.
  static constexpr int kPublished = kFunctionals * kTilePitch;
  /// To filter: carries of columns and rows, line by line; the coupling of the rows' carries to those along
  /// y, and the sums over windows that it is made of.
  static constexpr int kRowCarries = kStates * kTile;
  static constexpr int kCoupling = 2 * kStates * kTile;
  static constexpr int kSums = kCoupling + kStates * kStates;

  static std::size_t bytes(const WindowTransitions<Order>& x) {
    const int filtering = kSums + coupling_slots(x, 0).count() * kStates * kFunctionals;
    const int floats = kPublished > filtering ? kPublished : filtering;
    return sizeof(TilePixels) + static_cast<std::size_t>(floats) * sizeof(float);
  }
};
extern __shared__ float4 window_memory[];
__device__ inline TilePixels& shared_pixels() { return *reinterpret_cast<TilePixels*>(window_memory); }
__device__ inline float* behind_pixels() {
  return reinterpret_cast<float*>(window_memory) + sizeof(TilePixels) / sizeof(float);
}

/// Where a line of tiles has published states of one line of pixels.
struct StateSource {
  enum class Slots { kColumns, kRows, kCoupling };

  const float* states;       // of slot 0: the first number of the causal state
  std::int64_t slot_stride;  // of columns of tiles, and in shared memory
  int line_stride;
  int anticausal;  // from the causal state's first number to the anticausal state's
  Slots slots;
  const void* first_pixel;  // of the whole line, and the last
  const void* last_pixel;
  bool half_pixels;

  __device__ float load_pixel(const void* pixel) const {
    return half_pixels ? __half2float(*static_cast<const __half*>(pixel)) : *static_cast<const float*>(pixel);
  }
};

/// Sums states over windows. All lines go through the same code: it is long, and instructions that are run
/// for the first time are waited for.
template <int Order, class Real>
class WindowSums {
 public:
  __device__ WindowSums(const WindowFilter<Order, Real>& f, const Tile& tile, float* memory)
      : f_(f),
        tile_(tile),
        memory_(memory),
        slots_(coupling_slots(f.transitions[kAlongX], tile.at.column)),
        thread_(static_cast<int>(threadIdx.x)) {}

  /// Finds the carries of the tile's columns and rows, and their coupling. By all of the block's kThreads
  /// threads; ends with a barrier.
  template <int kThreads>
  __device__ void find() const {
    const int coupling_tasks = f_.along_both() ? slots_.count() * kFunctionals : 0;
    const int tasks = 2 * kTile + coupling_tasks;
    const int rounds = (tasks + kThreads - 1) / kThreads + (f_.along_both() ? 1 : 0);
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
      const int number = round * kThreads + thread_;
      Task task{};
      if (f_.along_both() && round == rounds - 1) {
        __syncthreads();
        task = carry_task();
      } else if (number < kTile) {
        task = column_task(number);
      } else if (number < 2 * kTile) {
        task = row_task(number - kTile);
      } else {
        task = coupling_task(number - 2 * kTile, coupling_tasks);
      }
      if (task.valid) run(task);
    }
    __syncthreads();
  }

  __device__ void column_carries(int line, float (&before)[Order], float (&after)[Order]) const {
    load(memory_ + line, before, after);
  }
  /// `responses`: of the row's pixels to the column carries, 2 * Order of them.
  __device__ void row_carries(int line, const float* responses, float (&before)[Order],
                              float (&after)[Order]) const {
    load(memory_ + Memory::kRowCarries + line, before, after);
    if (!f_.a.along_columns) return;
    const float* coupling = memory_ + Memory::kCoupling;
#pragma unroll
    for (int k = 0; k < 2 * Order; ++k) {
      const float response = responses[k];
#pragma unroll
      for (int m = 0; m < Order; ++m) {
        before[m] += response * coupling[k * 2 * Order + m];
        after[m] += response * coupling[k * 2 * Order + Order + m];
      }
    }
  }

 private:
  using Memory = WindowMemory<Order>;
  using Layout = StateLayout<Order>;
  static constexpr int kFunctionals = Layout::kFunctionals;

  struct Task {
    bool valid;
    int axis;
    int here;  // the tile
    StateSource source;
    float* result;
    int result_stride;
  };

  __device__ static void load(const float* lines, float (&before)[Order], float (&after)[Order]) {
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      before[k] = lines[k * kTile];
      after[k] = lines[(Order + k) * kTile];
    }
  }

  __device__ Task column_task(int line) const {
    const TileImages& a = f_.a;
    const std::int64_t pixel = tile_.at.image * a.image_stride +
                               (tile_.at.column * kTile + line) * a.carries.channels + tile_.at.channel;
    const bool half = a.images.kind == ElementKind::kHalf;
    const std::int64_t last = pixel + (a.height - 1) * a.row_stride;
    return {a.along_columns && line < tile_.columns,
            kAlongY,
            static_cast<int>(tile_.at.row),
            {f_.states.column(tile_.at.image, tile_.at.column, tile_.at.channel) + line, 0, kTile,
             Order * kTile, StateSource::Slots::kRows, a.images.first + pixel * (half ? 2 : 4),
             a.images.first + last * (half ? 2 : 4), half},
            memory_ + line,
            kTile};
  }
  __device__ Task row_task(int line) const {
    const float* first_tile = f_.states.at({tile_.at.image, tile_.at.row, 0, tile_.at.channel}) + line;
    const float* last_tile = first_tile + (f_.transitions[kAlongX].tiles - 1) * f_.states.column_stride();
    return {f_.a.along_rows && line < tile_.rows,
            kAlongX,
            static_cast<int>(tile_.at.column),
            {first_tile + Layout::kRows * kTile, f_.states.column_stride(), kTile, Order * kTile,
             StateSource::Slots::kColumns, first_tile + Layout::kBorder * kTile,
             last_tile + (Layout::kBorder + 1) * kTile, false},
            memory_ + Memory::kRowCarries + line,
            kTile};
  }
  /// One number of a column of tiles' coupling.
  __device__ Task coupling_task(int task, int tasks) const {
    const int slot = task / kFunctionals;
    const int functional = task % kFunctionals;
    const int column = slots_.column_of(slot);
    const bool valid = task < tasks && column >= 0 && column < slots_.tiles;
    const float* states = f_.states.column(tile_.at.image, valid ? column : 0, tile_.at.channel) +
                          Layout::kCoupling + functional;
    const std::int64_t first_row = f_.states.offset_of(0);
    const std::int64_t last_row = f_.states.offset_of(f_.transitions[kAlongY].tiles - 1);
    return {valid,
            kAlongY,
            static_cast<int>(tile_.at.row),
            {states, 0, kFunctionals, Order * kFunctionals, StateSource::Slots::kRows,
             states + first_row + 2 * Order * kFunctionals,
             states + last_row + (2 * Order + 1) * kFunctionals, false},
            memory_ + Memory::kSums + slot * 2 * Order * kFunctionals + functional,
            kFunctionals};
  }
  /// One of the carries along y of a row of tiles, taken as a row of pixels.
  __device__ Task carry_task() const {
    const float* sums = memory_ + Memory::kSums + thread_ * kFunctionals;
    constexpr int kStride = 2 * Order * kFunctionals;
    return {thread_ < 2 * Order,
            kAlongX,
            static_cast<int>(tile_.at.column),
            {sums, kStride, 1, Order, StateSource::Slots::kCoupling,
             sums + slots_.slot_of(0) * kStride + 2 * Order,
             sums + slots_.slot_of(slots_.tiles - 1) * kStride + 2 * Order + 1, false},
            memory_ + Memory::kCoupling + thread_ * 2 * Order,
            1};
  }

  __device__ std::int64_t offset_of(const StateSource& source, int tile) const {
    if (source.slots == StateSource::Slots::kRows) return f_.states.offset_of(tile);
    return (source.slots == StateSource::Slots::kCoupling ? slots_.slot_of(tile) : tile) * source.slot_stride;
  }

  /// The carries of the task's tile, into its result.
  __device__ void run(const Task& task) const {
    const WindowTransitions<Order>& axis = f_.transitions[task.axis];
    const int last_tile = axis.tiles - 1;
    const int first = max(task.here - axis.window, 0);
    const int last = min(task.here + axis.window, last_tile);
    float before[Order] = {};
    float after[Order] = {};
    if (first == 0 || last == last_tile)
      begin_at_borders(task, axis, first == 0, last == last_tile, before, after);
    add_aggregates(task, axis, 0, first, task.here - first, 1, before);
    add_aggregates(task, axis, task.source.anticausal, last, last - task.here, -1, after);
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      task.result[k * task.result_stride] = before[k];
      task.result[(Order + k) * task.result_stride] = after[k];
    }
  }

  /// Takes `state` through `count` tiles from `first` on, by their responses: state = A state + response.
  /// kWindowBatch tiles' responses are loaded at once.
  __device__ void add_aggregates(const Task& task, const WindowTransitions<Order>& axis, int numbers,
                                 int first, int count, int step, float (&state)[Order]) const {
    const int last_tile = axis.tiles - 1;
#pragma unroll 1
    for (int i = 0; i < count; i += kWindowBatch) {
      float aggregate[kWindowBatch][Order];
#pragma unroll
      for (int j = 0; j < kWindowBatch; ++j) {
        const int tile = first + step * min(i + j, count - 1);
        const float* numbers_of = task.source.states + offset_of(task.source, tile) + numbers;
#pragma unroll
        for (int k = 0; k < Order; ++k) aggregate[j][k] = numbers_of[k * task.source.line_stride];
      }
#pragma unroll
      for (int j = 0; j < kWindowBatch; ++j) {
        if (i + j >= count) continue;
        const int tile = first + step * (i + j);
        if (step > 0) {
          apply_transition(tile == last_tile ? axis.tile.forward_last : axis.tile.forward, aggregate[j],
                           state);
        } else {
          // Only runs over the whole image go through tile 0.
          apply_transition(tile == 0           ? axis.tile.backward_first
                           : tile == last_tile ? axis.tile.backward_last
                                               : axis.tile.backward,
                           aggregate[j], state);
        }
      }
    }
  }

  __device__ void begin_at_borders(const Task& task, const WindowTransitions<Order>& axis, bool at_first,
                                   bool at_last, float (&before)[Order], float (&after)[Order]) const {
    const TileTransitions<Order, float>& transitions = axis.tile;
    float forward[Order] = {};
    float backward[Order] = {};
    if (transitions.needs_runs) {
      const int seen = min(axis.window + 1, axis.tiles);
      add_aggregates(task, axis, 0, axis.tiles - seen, seen, 1, forward);
      add_aggregates(task, axis, task.source.anticausal, seen - 1, seen, -1, backward);
    }
    if (at_first) {
      const float pixel = task.source.load_pixel(task.source.first_pixel);
#pragma unroll
      for (int k = 0; k < Order; ++k) before[k] = transitions.start_from_first_pixel[k] * pixel;
      transitions.start_from_forward.add_product(forward, before);
      transitions.start_from_backward.add_product(backward, before);
    }
    if (at_last) {
      const float pixel = task.source.load_pixel(task.source.last_pixel);
#pragma unroll
      for (int k = 0; k < Order; ++k) after[k] = transitions.end_from_last_pixel[k] * pixel;
      transitions.end_from_forward.add_product(forward, after);
      transitions.end_from_backward.add_product(backward, after);
    }
  }

  const WindowFilter<Order, Real>& f_;
  const Tile& tile_;
  float* memory_;
  CouplingSlots slots_;
  int thread_;
};

}  // namespace cumulus::recursive_filter
