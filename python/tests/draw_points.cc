// Maps points by cumulus/sampling.h, for test_sampling_bits.py.
//   draw_points TABLE POINTS OUT LAYER      POINTS: pairs of u32; OUT: 8 floats a point
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "cumulus/sampling.h"

namespace {

std::vector<char> read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

int main(int, char** arguments) {
  using namespace cumulus::sampling;
  const std::vector<char> bytes = read(arguments[1]);
  std::vector<std::uint64_t> table((bytes.size() + 7) / 8);
  std::memcpy(table.data(), bytes.data(), bytes.size());
  TableView view;
  view.data = reinterpret_cast<const unsigned char*>(table.data());
  view.layer = static_cast<std::uint32_t>(std::atoi(arguments[4]));
  const TableError error = parse_header(view.data, bytes.size(), bytes.size(), view.header);
  if (error != TableError::kNone) {
    std::fprintf(stderr, "%s\n", describe(error));
    return 1;
  }
  const std::vector<char> packed = read(arguments[2]);
  std::vector<std::uint32_t> points(packed.size() / 4);
  std::memcpy(points.data(), packed.data(), packed.size());
  std::vector<float> out;
  out.reserve(points.size() * 4);
  for (std::size_t i = 0; i + 1 < points.size(); i += 2) {
    const Sample drawn = sample(view, points[i], points[i + 1]);
    const bool sphere = on_sphere(view.header.projection);
    const float by_direction = sphere ? pdf(view, drawn.direction) : 0.0F;
    out.insert(out.end(), {drawn.u, drawn.v, drawn.pdf, drawn.direction[0], drawn.direction[1],
                           drawn.direction[2], pdf(view, drawn.u, drawn.v), by_direction});
  }
  std::ofstream(arguments[3], std::ios::binary)
      .write(reinterpret_cast<const char*>(out.data()),
             static_cast<std::streamsize>(out.size() * sizeof(float)));
  return 0;
}
