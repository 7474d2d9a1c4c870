// What a renderer's source file with the public header looks like: compiled as C++17, with no other include
// path than the header's own. That it compiles without a warning is the test.
#include "cumulus/sampling.h"

namespace {

float draw(const void* bytes, std::size_t size, std::uint32_t index) {
  cumulus::sampling::TableView table;
  if (cumulus::sampling::parse_header(bytes, size, size, table.header) !=
      cumulus::sampling::TableError::kNone) {
    return -1.0F;
  }
  table.data = static_cast<const unsigned char*>(bytes);
  const cumulus::sampling::FixedPoint2 point = cumulus::sampling::sobol_point(index);
  const cumulus::sampling::Sample drawn = cumulus::sampling::sample(table, point.x, point.y);
  return drawn.pdf - cumulus::sampling::pdf(table, drawn.direction);
}

}  // namespace

int main() { return draw("", 0, 0) < 0.0F ? 0 : 1; }
