#include "server/runtime/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <limits>
#include <string_view>

namespace cumulus::server {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// What the file says; kNoLimit where it is missing or says "max".
std::int64_t read_limit(const std::string& path) {
  std::ifstream file(path);
  std::int64_t bytes = 0;
  return file >> bytes && bytes > 0 ? bytes : kNoLimit;
}

/// The smallest limit of `group` and of all that it lies in. A container often sees its own group as the
/// root, whatever /proc/self/cgroup calls it.
std::int64_t smallest_limit(const std::string& mount, std::string group, const std::string& file) {
  std::int64_t smallest = read_limit(mount + "/" + file);
  while (!group.empty() && group != "/") {
    smallest = std::min(smallest, read_limit(mount + group + "/" + file));
    group.erase(group.rfind('/'));
  }
  return smallest;
}

/// Whether a line of /proc/self/cgroup, HIERARCHY:CONTROLLERS:PATH, is of version 1's memory controller.
bool counts_memory(std::string_view controllers) {
  while (!controllers.empty()) {
    const std::size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == "memory") return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

}  // namespace

std::int64_t available_memory_bytes(const std::string& root) {
  std::int64_t bytes = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGE_SIZE);
  const std::string groups = root + "/sys/fs/cgroup";
  bytes = std::min(bytes, smallest_limit(groups, "", "memory.max"));
  bytes = std::min(bytes, smallest_limit(groups + "/memory", "", "memory.limit_in_bytes"));
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      bytes = std::min(bytes, smallest_limit(groups, path, "memory.max"));
      bytes = std::min(bytes, smallest_limit(groups + "/unified", path, "memory.max"));
    } else if (counts_memory(controllers)) {
      bytes = std::min(bytes, smallest_limit(groups + "/memory", path, "memory.limit_in_bytes"));
    }
  }
  return bytes;
}

}  // namespace cumulus::server
