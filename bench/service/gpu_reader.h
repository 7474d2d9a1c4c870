#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cumulus::bench {

/// Makes the context of the machine's first GPU current, and says its model. Throws std::runtime_error.
std::string use_first_gpu();

/// A program's own GPU work: a copy within the GPU, which reads every byte of an array. Throws
/// std::runtime_error.
class GpuReader {
 public:
  explicit GpuReader(std::size_t bytes);
  ~GpuReader();
  GpuReader(const GpuReader&) = delete;
  GpuReader& operator=(const GpuReader&) = delete;

  /// Returns when it is done.
  void read(const void* from) const;
  /// What was read last.
  std::vector<std::byte> content() const;

 private:
  const std::size_t bytes_;
  void* memory_ = nullptr;
};

}  // namespace cumulus::bench
