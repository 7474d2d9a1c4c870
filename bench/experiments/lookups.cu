// Each way of lookups.h on a GPU: 10^8 incoherent points of each distribution, CUDA events, median of 15, samples
// compared bit by bit with today's. The package is built where it runs; a build of the CPU backend makes the tables.
#include <algorithm>
#include <cstdio>
#include <functional>

#include "maps.h"

using namespace cumulus;
using namespace cumulus::lookups;

namespace {

#define CHECK(call)                                                                        \
  do {                                                                                     \
    const cudaError_t error = (call);                                                      \
    if (error != cudaSuccess) {                                                            \
      std::printf("%s: %s\n", #call, cudaGetErrorString(error));                           \
      std::exit(1);                                                                        \
    }                                                                                      \
  } while (false)

constexpr int kThreads = 512;
constexpr std::int64_t kPoints = 100'000'000;

struct Arrays {
  const sampling::FixedPoint2* points;
  float2* position;
  float* pdf;
};
struct Wide {
  const Quad* guide;  // of all rows
  const Quad* nodes;
  std::uint32_t bits;
};

template <class Way>
__global__ void __launch_bounds__(kThreads)
    draw(const __grid_constant__ sampling::TableView table, const __grid_constant__ Wide wide, std::int64_t count, Arrays arrays) {
  extern __shared__ unsigned char near[];
  const sampling::TableHeader& header = table.header;
  Distribution marginal = sampling::detail::marginal(table);
  const std::uint32_t lower_bytes = 4 * header.height;
  const std::uint32_t guide_bytes = static_cast<std::uint32_t>(header.marginal_guide_size * guide_entry_bytes(header.method, header.height));
  const std::uint32_t node_words = static_cast<std::uint32_t>(node_bytes(header.method, header.height) / 4);
  if (header.height > 1) {
    auto* lower = reinterpret_cast<std::uint32_t*>(near);
    auto* guide = reinterpret_cast<std::uint16_t*>(near + lower_bytes);
    auto* nodes = reinterpret_cast<std::uint32_t*>(near + lower_bytes + guide_bytes);
    for (std::uint32_t i = threadIdx.x; i < header.height; i += kThreads) lower[i] = marginal.lower[i];
    for (std::uint32_t i = threadIdx.x; i < guide_bytes / 2; i += kThreads)
      guide[i] = reinterpret_cast<const std::uint16_t*>(marginal.guide)[i];
    for (std::uint32_t i = threadIdx.x; i < node_words; i += kThreads)
      nodes[i] = reinterpret_cast<const std::uint32_t*>(marginal.nodes)[i];
    marginal.lower = lower;
    marginal.guide = reinterpret_cast<unsigned char*>(guide);
    marginal.nodes = reinterpret_cast<unsigned char*>(nodes);
    __syncthreads();
  }
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += stride) {
    const sampling::FixedPoint2 point = arrays.points[i];
    const Located down = sampling::detail::locate(header.method, marginal, point.y);
    const std::uint32_t y = down.cell.index;
    const Row row{sampling::detail::row(table, y), wide.guide + std::size_t{y} * header.row_guide_size,
                  wide.nodes + std::size_t{y} * header.width, wide.bits};
    const Located across = Way::locate(row, point.x);
    arrays.position[i] = make_float2(position_in(across.cell.index, across.fraction, header.width),
                                     position_in(y, down.fraction, header.height));
    arrays.pdf[i] = density(header, {}, down.cell.mass, across.cell.mass);
  }
}

__global__ void make_points(sampling::FixedPoint2* points, std::int64_t count, bool grid) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const auto index = static_cast<std::uint32_t>(i);
  if (!grid) {
    points[i] = {index * 3242174889u, index * 2447445414u};
    return;
  }
  const std::uint64_t step = (std::uint64_t{1} << 32) / 10000;
  points[i] = {static_cast<std::uint32_t>(i % 10000 * step + step / 2), static_cast<std::uint32_t>(i / 10000 * step + step / 2)};
}
template <class Way>
__global__ void widen(const __grid_constant__ sampling::TableView table, Quad* guide) {
  const Row row{sampling::detail::row(table, blockIdx.y), nullptr, nullptr, 0};
  const std::uint32_t g = blockIdx.x * blockDim.x + threadIdx.x;
  if (g < row.cells.guide_size) guide[std::size_t{blockIdx.y} * row.cells.guide_size + g] = Way::entry(row.cells, g);
}
__global__ void compact(const __grid_constant__ sampling::TableView table, Quad* nodes) {
  const Distribution cells = sampling::detail::row(table, blockIdx.y);
  const std::uint32_t j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < cells.count) nodes[std::size_t{blockIdx.y} * cells.count + j] = compact_node(cells, j);
}
__global__ void compare(Arrays a, Arrays b, std::int64_t count, unsigned long long* wrong) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  if (a.position[i].x != b.position[i].x || a.position[i].y != b.position[i].y || a.pdf[i] != b.pdf[i]) atomicAdd(wrong, 1ull);
}

template <class T>
T* device(std::size_t count) {
  void* p = nullptr;
  CHECK(cudaMalloc(&p, count * sizeof(T)));
  return static_cast<T*>(p);
}

struct DeviceTable {
  sampling::TableView view;
  unsigned char* data;
};
DeviceTable upload(const Table& table) {
  auto* data = device<unsigned char>(table.size());
  CHECK(cudaMemcpy(data, table.blocks.data(), table.size(), cudaMemcpyHostToDevice));
  return {{table.header, data, 0}, data};
}

unsigned long long* wrong_count;
Arrays expected;
Arrays found;

/// 10^9 samples a second; the first way's samples are what the others must give.
template <class Way>
double measure(const DeviceTable& table, const Wide& wide, bool first) {
  const Arrays& to = first ? expected : found;
  const sampling::TableHeader& header = table.view.header;
  const std::size_t near = header.height > 1 ? 4 * header.height + header.marginal_guide_size * guide_entry_bytes(header.method, header.height) +
                                                   node_bytes(header.method, header.height)
                                             : 0;
  const auto kernel = draw<Way>;
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(near)));
  int each = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, kThreads, near));
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  cudaEvent_t begin;
  cudaEvent_t end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < 17; ++i) {
    CHECK(cudaEventRecord(begin));
    kernel<<<static_cast<unsigned>(each * properties.multiProcessorCount), kThreads, near>>>(table.view, wide, kPoints, to);
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 2) times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  if (!first) {
    CHECK(cudaMemset(wrong_count, 0, 8));
    compare<<<(kPoints + 255) / 256, 256>>>(expected, found, kPoints, wrong_count);
    unsigned long long wrong = 0;
    CHECK(cudaMemcpy(&wrong, wrong_count, 8, cudaMemcpyDeviceToHost));
    if (wrong > 0) std::printf("  WRONG: %s, %llu samples\n", Way::kName, wrong);
  }
  return kPoints / (times[times.size() / 2] * 1e6);
}

template <class Way>
Wide wide_of(const DeviceTable& table, Quad* guide, Quad* nodes) {
  const sampling::TableHeader& header = table.view.header;
  widen<Way><<<dim3((header.row_guide_size + 255) / 256, header.height), 256>>>(table.view, guide);
  CHECK(cudaGetLastError());
  const NodeBits bits = NodeBits::of(header.width, header.row_guide_size);
  return {guide, nodes, bits.key | bits.child << 8};
}

void run(const Map& map) {
  const DeviceTable cut = upload(build(map, Method::kCutpointBinary));
  const DeviceTable forest = upload(build(map, Method::kRadixForest));
  const DeviceTable four = upload(build(map, Method::kRadixForest4));
  const std::size_t cells = static_cast<std::size_t>(map.height * map.width);
  Quad* guide = device<Quad>(cells);
  Quad* nodes = device<Quad>(cells);
  std::printf("%-28s", map.name.c_str());
  const Wide none{nullptr, nullptr, 0};
  const double c_today = measure<Today<Method::kCutpointBinary>>(cut, none, true);
  const double f_today = measure<Today<Method::kRadixForest>>(forest, none, false);
  const double c_quads = measure<CutpointByQuads>(cut, none, false);
  const double f_quads = measure<ForestByQuads>(forest, none, false);
  const double c_wide = measure<CutpointWide>(cut, wide_of<CutpointWide>(cut, guide, nodes), false);
  const double f_wide = measure<ForestWide>(forest, wide_of<ForestWide>(forest, guide, nodes), false);
  const double four_today = measure<Today<Method::kRadixForest4>>(four, none, false);
  compact<<<dim3((four.view.header.width + 255) / 256, four.view.header.height), 256>>>(four.view, nodes);
  CHECK(cudaGetLastError());
  const Wide both = wide_of<FourCompactWide>(four, guide, nodes);
  const double four_compact = measure<FourCompact>(four, both, false);
  const double four_wide = measure<FourCompactWide>(four, both, false);
  for (const double rate : {c_today, f_today, c_quads, f_quads, c_wide, f_wide, four_today, four_compact, four_wide})
    std::printf(" %6.1f (%4.2f)", rate, rate / c_today);
  std::printf("\n");
  std::fflush(stdout);
  CHECK(cudaFree(guide));
  CHECK(cudaFree(nodes));
  for (const DeviceTable& table : {cut, forest, four}) CHECK(cudaFree(table.data));
}

}  // namespace

int main() {
  auto* points = device<sampling::FixedPoint2>(kPoints);
  expected = {points, device<float2>(kPoints), device<float>(kPoints)};
  found = {points, device<float2>(kPoints), device<float>(kPoints)};
  wrong_count = device<unsigned long long>(1);
  for (const bool grid : {false, true}) {
    make_points<<<(kPoints + 255) / 256, 256>>>(points, kPoints, grid);
    CHECK(cudaDeviceSynchronize());
    std::printf("%s points, 10^9 samples a second (in brackets over cutpoint today)\n", grid ? "coherent" : "incoherent");
    std::printf("%-28s %13s %13s %13s %13s %13s %13s %13s %13s %13s\n", "", "C today", "F today", "C quads", "F quads", "C 16", "F 16", "4 today", "4 compact", "4 compact 16");
    for (const std::int64_t n : {std::int64_t{1} << 20, std::int64_t{100}})
      for (const Map& map : lines(n)) run(map);
    run(sky(1024, 2048, 0));
    run(sky(1024, 2048, 2));
    if (!grid) run(sky(4096, 8192, 0));
  }
  return 0;
}
