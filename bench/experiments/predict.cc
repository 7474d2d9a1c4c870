// Counts the loads of a row's search by each way, checks that all find the same, and predicts rates: a
// multiprocessor looks up one line a cycle, so that 132 of them at 1.755 GHz serve 231 G lanes' loads a second.
#include <cstdio>

#include "maps.h"

using namespace cumulus;
using namespace cumulus::lookups;

namespace {

constexpr double kLinesPerSecond = 132 * 1.755e9;
long wrong = 0;

template <class Way, class Wide>
double count(const Table& table, const Table& reference, const Wide& wide) {
  const sampling::TableView view = table.view();
  const sampling::TableHeader& header = table.header;
  const NodeBits bits = NodeBits::of(header.width, header.row_guide_size);
  const int n = 20000;
  loads = 0;
  std::vector<Quad> guide(header.row_guide_size);
  std::vector<Quad> nodes;
  std::uint32_t built = ~0u;
  for (int i = 0; i < n; ++i) {
    const auto x = static_cast<std::uint32_t>(i) * 3242174889u;
    // rows one after another, each with many points: their wide guides are built as they come
    const std::uint32_t y = static_cast<std::uint32_t>(static_cast<std::uint64_t>(i) * std::min<std::uint32_t>(header.height, 20) / n * (header.height / std::min<std::uint32_t>(header.height, 20)));
    Row row{sampling::detail::row(view, y), nullptr, nullptr, bits.key | bits.child << 8};
    if (y != built) {
      built = y;
      wide(row.cells, guide, nodes);
    }
    row.guide16 = guide.data();
    row.nodes16 = nodes.data();
    const long before = loads;
    const Located found = Way::locate(row, x);
    const long own = loads - before;
    const Located expected = sampling::detail::locate(reference.header.method, sampling::detail::row(reference.view(), y), x);
    loads = before + own;
    if (found.cell.index != expected.cell.index || found.cell.lower != expected.cell.lower ||
        found.cell.mass != expected.cell.mass || found.fraction != expected.fraction)
      ++wrong;
  }
  return static_cast<double>(loads) / n;
}

const auto none = [](const Distribution&, std::vector<Quad>&, std::vector<Quad>&) {};
template <class Way>
void widen(const Distribution& cells, std::vector<Quad>& guide, std::vector<Quad>&) {
  for (std::uint32_t g = 0; g < cells.guide_size; ++g) guide[g] = Way::entry(cells, g);
}
void compact(const Distribution& cells, std::vector<Quad>&, std::vector<Quad>& nodes) {
  nodes.resize(cells.count);
  for (std::uint32_t j = 0; j < cells.count; ++j) nodes[j] = compact_node(cells, j);
}

}  // namespace

int main() {
  std::vector<Map> maps;
  for (const std::int64_t n : {std::int64_t{100}, std::int64_t{1} << 20})
    for (Map& map : lines(n)) maps.push_back(std::move(map));
  maps.push_back(sky(1024, 2048, 0));
  maps.push_back(sky(1024, 2048, 2));
  maps.push_back(sky(4096, 8192, 0));
  maps.push_back(sky(4096, 8192, 1));
  std::printf("loads a sample; in brackets 231 G / loads\n");
  std::printf("%-28s %13s %13s %13s %13s %13s %13s %13s %13s %13s\n", "", "C today", "F today", "C quads", "F quads", "C 16", "F 16", "4 today", "4 compact", "4 compact 16");
  for (const Map& map : maps) {
    const Table cut = build(map, Method::kCutpointBinary);
    const Table forest = build(map, Method::kRadixForest);
    const Table four = build(map, Method::kRadixForest4);
    const double all[] = {
        count<Today<Method::kCutpointBinary>>(cut, cut, none), count<Today<Method::kRadixForest>>(forest, cut, none),
        count<CutpointByQuads>(cut, cut, none), count<ForestByQuads>(forest, cut, none),
        count<CutpointWide>(cut, cut, widen<CutpointWide>), count<ForestWide>(forest, cut, widen<ForestWide>),
        count<Today<Method::kRadixForest4>>(four, cut, none), count<FourCompact>(four, cut, compact),
        count<FourCompactWide>(four, cut, [](const Distribution& cells, std::vector<Quad>& guide, std::vector<Quad>& nodes) {
          widen<FourCompactWide>(cells, guide, nodes);
          compact(cells, guide, nodes);
        })};
    std::printf("%-28s", map.name.c_str());
    for (const double loads_each : all) std::printf("  %4.2f (%4.0f)", loads_each, kLinesPerSecond / loads_each / 1e9);
    const NodeBits bits = NodeBits::of(four.header.width, four.header.row_guide_size);
    std::printf("  node bits %u\n", 3 * bits.key + 4 * bits.child);
  }
  std::printf("%ld wrong\n", wrong);
  return wrong != 0;
}
