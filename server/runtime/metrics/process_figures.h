#pragma once

#include <cstddef>

namespace cumulus::server {

/// What the kernel says of this process; what it does not say is 0.
struct ProcessFigures {
  std::size_t resident_bytes = 0;
  std::size_t virtual_bytes = 0;
  std::size_t threads = 0;
  std::size_t open_files = 0;
  std::size_t max_files = 0;
  double processor_seconds = 0;
  double start_time_seconds = 0;  // of the Unix epoch
};

ProcessFigures read_process_figures();

}  // namespace cumulus::server
