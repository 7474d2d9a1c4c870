#pragma once

#include <cstdint>

#include "kernels/recursive_filter/gpu/tile_lines.cuh"
#include "kernels/recursive_filter/gpu/windows.cuh"
#include "kernels/recursive_filter/math/tile_responses.h"
#include "kernels/recursive_filter/method.h"
#include "kernels/recursive_filter/windows/schedule.h"

// The methods that complete no carries. Each tile publishes the states that it leaves by itself; a tile that
// needs to know what lies before and after it adds up those of its neighbours, as many of them as the filter
// remembers: its window. A window that holds the whole axis is exact.
//
// The rows' states are to be those of the image filtered along y. A tile publishes them of its pixels
// filtered along y as if nothing lay above and below. What does lie there adds to every column the filter's
// response to the column's carries, and so to the rows' states: the carries' own states along x (the tile's
// cross states, a few numbers) are summed over the window along y first, then over the window along x.

namespace cumulus::recursive_filter {

/// What windows need of one axis' plan to filter a tile.
template <int Order, class Real>
struct WindowAxis {
  TileAxis<Order, Real> line;
  StretchMoves<Order, Real> causal_stretches, anticausal_stretches;

  explicit WindowAxis(const AxisPlan& plan)
      : line(plan), causal_stretches(plan.causal), anticausal_stretches(plan.anticausal) {}
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

/// What follows from the plan.
template <int Order, class Real>
struct WindowConstants {
  WindowAxis<Order, Real> y, x;
  WindowMoves<Order> moves[2];        // kAlongY, kAlongX
  TileResponses<Order> responses[2];  // of a whole tile, of one in the last row

  explicit WindowConstants(const RecursiveFilterPlan& plan)
      : y(plan.y),
        x(plan.x),
        moves{{plan.y, plan.windows->y}, {plan.x, plan.windows->x}},
        responses{{plan.y, kTile},
                  {plan.y, plan.y.length - (moves[kAlongY].tiles - 1) * std::int64_t{kTile}}} {}

  __device__ const TileResponses<Order>& responses_of(const TileIndex& tile) const {
    return responses[tile.row == moves[kAlongY].tiles - 1 ? 1 : 0];
  }
};

template <int Order, class Real>
struct WindowFilter : WindowConstants<Order, Real> {
  TileImages a;
  StateMap states;
  __device__ bool along_both() const { return a.along_columns && a.along_rows; }
};

/// The columns of tiles whose cross states a block sums along y: those of its window and, where the boundary
/// asks for runs over the image, the first and the last that such a run sees.
struct CrossSlots {
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
__host__ __device__ CrossSlots cross_slots(const WindowMoves<Order>& x, std::int64_t column) {
  return {x.tiles, x.window, static_cast<int>(column), x.sees_all(), x.over.needs_runs};
}

/// A block's shared memory: the tile, and behind it, in floats, what it has to say or to know of carries.
template <int Order>
struct WindowMemory {
  static constexpr int kStates = 2 * Order;
  static constexpr int kFunctionals = StateLayout<Order>::kFunctionals;
  /// To publish: rows of pixels of kTilePitch.
  static constexpr int kPublished = kFunctionals * kTilePitch;
  /// To filter: carries of columns and rows, line by line; what carries along y add to the rows' carries, and
  /// the sums of cross states that it is made of.
  static constexpr int kRowCarries = kStates * kTile;
  static constexpr int kCross = 2 * kStates * kTile;
  static constexpr int kSums = kCross + kStates * kStates;

  static std::size_t bytes(const WindowMoves<Order>& x) {
    const int filtering = kSums + cross_slots(x, 0).count() * kStates * kFunctionals;
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
  enum class Slots { kColumns, kRows, kCross };

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

/// Sums states over windows. All lines go through the same code, which is too long to be there once for each
/// kind: what is run for the first time waits for its instructions.
template <int Order, class Real>
class WindowSums {
 public:
  __device__ WindowSums(const WindowFilter<Order, Real>& f, const Tile& tile, float* memory)
      : f_(f),
        tile_(tile),
        memory_(memory),
        slots_(cross_slots(f.moves[kAlongX], tile.at.column)),
        thread_(static_cast<int>(threadIdx.x)) {}

  /// Finds the carries of the tile's columns and rows, and what carries along y add to the rows'. All of the
  /// block's kThreads threads; they are together afterwards.
  template <int kThreads>
  __device__ void find() const {
    const int cross_tasks = f_.along_both() ? slots_.count() * kFunctionals : 0;
    const int tasks = 2 * kTile + cross_tasks;
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
        task = cross_task(number - 2 * kTile, cross_tasks);
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
    const float* cross = memory_ + Memory::kCross;
#pragma unroll
    for (int k = 0; k < 2 * Order; ++k) {
      const float response = responses[k];
#pragma unroll
      for (int m = 0; m < Order; ++m) {
        before[m] += response * cross[k * 2 * Order + m];
        after[m] += response * cross[k * 2 * Order + Order + m];
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
    const float* last_tile = first_tile + (f_.moves[kAlongX].tiles - 1) * f_.states.column_stride();
    return {f_.a.along_rows && line < tile_.rows,
            kAlongX,
            static_cast<int>(tile_.at.column),
            {first_tile + Layout::kRows * kTile, f_.states.column_stride(), kTile, Order * kTile,
             StateSource::Slots::kColumns, first_tile + Layout::kBorder * kTile,
             last_tile + (Layout::kBorder + 1) * kTile, false},
            memory_ + Memory::kRowCarries + line,
            kTile};
  }
  /// One of a column of tiles' cross states.
  __device__ Task cross_task(int task, int tasks) const {
    const int slot = task / kFunctionals;
    const int functional = task % kFunctionals;
    const int column = slots_.column_of(slot);
    const bool valid = task < tasks && column >= 0 && column < slots_.tiles;
    const float* states =
        f_.states.column(tile_.at.image, valid ? column : 0, tile_.at.channel) + Layout::kCross + functional;
    const std::int64_t first_row = f_.states.offset_of(0);
    const std::int64_t last_row = f_.states.offset_of(f_.moves[kAlongY].tiles - 1);
    return {valid,
            kAlongY,
            static_cast<int>(tile_.at.row),
            {states, 0, kFunctionals, Order * kFunctionals, StateSource::Slots::kRows,
             states + first_row + 2 * Order * kFunctionals,
             states + last_row + (2 * Order + 1) * kFunctionals, false},
            memory_ + Memory::kSums + slot * 2 * Order * kFunctionals + functional,
            kFunctionals};
  }
  /// One of the carries along y of a row of tiles, which is a row of pixels like any other.
  __device__ Task carry_task() const {
    const float* sums = memory_ + Memory::kSums + thread_ * kFunctionals;
    constexpr int kStride = 2 * Order * kFunctionals;
    return {
        thread_ < 2 * Order,
        kAlongX,
        static_cast<int>(tile_.at.column),
        {sums, kStride, 1, Order, StateSource::Slots::kCross, sums + slots_.slot_of(0) * kStride + 2 * Order,
         sums + slots_.slot_of(slots_.tiles - 1) * kStride + 2 * Order + 1, false},
        memory_ + Memory::kCross + thread_ * 2 * Order,
        1};
  }

  __device__ std::int64_t offset_of(const StateSource& source, int tile) const {
    if (source.slots == StateSource::Slots::kRows) return f_.states.offset_of(tile);
    return (source.slots == StateSource::Slots::kCross ? slots_.slot_of(tile) : tile) * source.slot_stride;
  }

  /// The states before and after the task's tile, into its result.
  __device__ void run(const Task& task) const {
    const WindowMoves<Order>& axis = f_.moves[task.axis];
    const int last_tile = axis.tiles - 1;
    const int first = max(task.here - axis.window, 0);
    const int last = min(task.here + axis.window, last_tile);
    float before[Order] = {};
    float after[Order] = {};
    if (first == 0 || last == last_tile)
      begin_at_borders(task, axis, first == 0, last == last_tile, before, after);
    add_walk(task, axis, 0, first, task.here - first, 1, before);
    add_walk(task, axis, task.source.anticausal, last, last - task.here, -1, after);
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      task.result[k * task.result_stride] = before[k];
      task.result[(Order + k) * task.result_stride] = after[k];
    }
  }

  /// Moves `state` over `count` tiles from `first` on, and adds what each has published. The states of
  /// kWindowBatch tiles are on their way at once.
  __device__ void add_walk(const Task& task, const WindowMoves<Order>& axis, int numbers, int first,
                           int count, int step, float (&state)[Order]) const {
    const int last_tile = axis.tiles - 1;
#pragma unroll 1
    for (int i = 0; i < count; i += kWindowBatch) {
      float own[kWindowBatch][Order];
#pragma unroll
      for (int j = 0; j < kWindowBatch; ++j) {
        const int tile = first + step * min(i + j, count - 1);
        const float* numbers_of = task.source.states + offset_of(task.source, tile) + numbers;
#pragma unroll
        for (int k = 0; k < Order; ++k) own[j][k] = numbers_of[k * task.source.line_stride];
      }
#pragma unroll
      for (int j = 0; j < kWindowBatch; ++j) {
        if (i + j >= count) continue;
        const int tile = first + step * (i + j);
        if (step > 0) {
          move_over(tile == last_tile ? axis.over.forward_last : axis.over.forward, own[j], state);
        } else {
          // Into tile 0 only runs over the whole image go.
          move_over(tile == 0           ? axis.over.backward_first
                    : tile == last_tile ? axis.over.backward_last
                                        : axis.over.backward,
                    own[j], state);
        }
      }
    }
  }

  __device__ void begin_at_borders(const Task& task, const WindowMoves<Order>& axis, bool at_first,
                                   bool at_last, float (&before)[Order], float (&after)[Order]) const {
    const TileMoves<Order, float>& moves = axis.over;
    float forward[Order] = {};
    float backward[Order] = {};
    if (moves.needs_runs) {
      const int seen = min(axis.window + 1, axis.tiles);
      add_walk(task, axis, 0, axis.tiles - seen, seen, 1, forward);
      add_walk(task, axis, task.source.anticausal, seen - 1, seen, -1, backward);
    }
    if (at_first) {
      const float pixel = task.source.load_pixel(task.source.first_pixel);
#pragma unroll
      for (int k = 0; k < Order; ++k) before[k] = moves.start_from_first_pixel[k] * pixel;
      moves.start_from_forward.add_product(forward, before);
      moves.start_from_backward.add_product(backward, before);
    }
    if (at_last) {
      const float pixel = task.source.load_pixel(task.source.last_pixel);
#pragma unroll
      for (int k = 0; k < Order; ++k) after[k] = moves.end_from_last_pixel[k] * pixel;
      moves.end_from_forward.add_product(forward, after);
      moves.end_from_backward.add_product(backward, after);
    }
  }

  const WindowFilter<Order, Real>& f_;
  const Tile& tile_;
  float* memory_;
  CrossSlots slots_;
  int thread_;
};

}  // namespace cumulus::recursive_filter
