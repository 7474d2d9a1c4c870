#include "server/runtime/metrics/process_figures.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace cumulus::server {
namespace {

/// The fields of /proc/self/stat from the third, the state, on; proc(5) counts from 1.
struct StatFields {
  std::uint64_t threads = 0;      // 20
  std::uint64_t start_ticks = 0;  // 22
  std::uint64_t virtual_bytes = 0;
  std::uint64_t resident_pages = 0;
};

StatFields read_stat() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');  // a name may hold spaces and parentheses
  if (name_end == std::string::npos) return {};
  std::istringstream words(line.substr(name_end + 1));
  std::string skipped;
  StatFields fields;
  for (int i = 3; i < 20; ++i) words >> skipped;
  words >> fields.threads >> skipped >> fields.start_ticks >> fields.virtual_bytes >> fields.resident_pages;
  return words ? fields : StatFields{};
}

double boot_time() {
  std::ifstream file("/proc/stat");
  std::string word;
  while (file >> word) {
    double seconds = 0;
    if (word == "btime" && file >> seconds) return seconds;
  }
  return 0;
}

std::size_t count_open_files() {
  std::error_code error;
  std::size_t count = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end;
       entry.increment(error))
    ++count;
  return count > 0 ? count - 1 : 0;  // without the folder itself
}

}  // namespace

ProcessFigures read_process_figures() {
  const StatFields stat = read_stat();
  ProcessFigures figures;
  figures.threads = stat.threads;
  figures.virtual_bytes = stat.virtual_bytes;
  figures.resident_bytes = stat.resident_pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  figures.open_files = count_open_files();
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) figures.max_files = files.rlim_cur;
  timespec time{};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0)
    figures.processor_seconds = static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  const double booted = boot_time();
  figures.start_time_seconds =
      booted + static_cast<double>(stat.start_ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return figures;
}

}  // namespace cumulus::server
