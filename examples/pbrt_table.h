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

/// The array conditional_func of the archive, whose files are stored as they are, in numpy's format.
inline pbrt::PiecewiseConstant2D ReadCumulusTable(const std::string& filename, pbrt::Allocator alloc = {}) {
  std::ifstream file(filename, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  const std::string start = "conditional_func.npy\x93NUMPY\1";
  const size_t found = bytes.find(start);
  const size_t header = found + start.size() + 3;  // its length is in the two bytes before it
  if (found != std::string::npos && header < bytes.size()) {
    const auto byte = [&bytes](size_t at) { return static_cast<unsigned char>(bytes[at]); };
    const size_t values = header + byte(header - 2) + 256 * byte(header - 1);
    size_t rows = 0, columns = 0;
    std::sscanf(&bytes[header], "%*[^(](%zu, %zu)", &rows, &columns);
    std::vector<float> function(bytes.size() / sizeof(float));
    if (rows > 0 && columns > 0 && columns <= function.size() / rows &&
        values + rows * columns * sizeof(float) <= bytes.size()) {
      std::memcpy(function.data(), &bytes[values], rows * columns * sizeof(float));
      const std::vector<pbrt::Float> density(function.begin(), function.begin() + rows * columns);
      return pbrt::PiecewiseConstant2D(density, int(columns), int(rows), alloc);
    }
  }
  pbrt::ErrorExit("%s: holds no table; cumulus sampling-table IN --export pbrt -o OUT.npz writes one",
                  filename);
}
