// For a build of pbrt-v4: reads what `cumulus sampling-table --export pbrt` writes. docs/pbrt.md says where
// it goes.
#pragma once

#include <pbrt/util/error.h>
#include <pbrt/util/sampling.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

/// Finds the array conditional_func in the archive, whose files are stored as they are.
inline pbrt::PiecewiseConstant2D ReadCumulusTable(const std::string& filename, pbrt::Allocator alloc = {}) {
  std::ifstream file(filename, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const auto number = [&bytes](size_t at, size_t size) {  // little-endian
    size_t value = 0;
    while (size-- > 0) value = value << 8 | static_cast<unsigned char>(bytes[at + size]);
    return value;
  };
  for (size_t at = 0; at + 30 <= bytes.size() && bytes.compare(at, 4, "PK\3\4") == 0;) {
    const size_t size = number(at + 18, 4);
    const size_t array = at + 30 + number(at + 26, 2) + number(at + 28, 2);
    if (array + size > bytes.size()) break;  // cut off
    if (bytes.compare(at + 30, number(at + 26, 2), "conditional_func.npy") == 0 && size > 10) {
      const size_t values = array + 10 + number(array + 8, 2);
      const std::string header = bytes.substr(array + 10, values - array - 10);
      int rows = 0;
      int columns = 0;
      const size_t shape = header.find("'shape'");
      if (shape != std::string::npos) std::sscanf(&header[shape], "'shape': (%d, %d)", &rows, &columns);
      const size_t count = static_cast<size_t>(rows) * static_cast<size_t>(columns);
      if (rows < 1 || columns < 1 || values + count * sizeof(float) != array + size) break;
      std::vector<float> function(count);
      std::memcpy(function.data(), &bytes[values], function.size() * sizeof(float));
      const std::vector<pbrt::Float> density(function.begin(), function.end());
      return pbrt::PiecewiseConstant2D(density, columns, rows, alloc);
    }
    at = array + size;
  }
  pbrt::ErrorExit("%s: holds no table; cumulus sampling-table IN --export pbrt -o OUT.npz writes one",
                  filename);
}
