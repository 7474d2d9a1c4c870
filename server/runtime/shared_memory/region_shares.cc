#include "server/runtime/shared_memory/region_shares.h"

#include <string_view>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

absl::Status over(std::string_view limit, std::string_view whose, std::size_t wanted, std::size_t allowed) {
  return exhausted(concat("shared_memory:", limit),
                   concat(whose, " would be ", wanted, "; the server allows ", allowed, " (", limit, ")"));
}

}  // namespace

void RegionShares::give_back(const Part& part) {
  const std::lock_guard lock(mutex_);
  const auto own = taken_.find(part.user);
  for (Taken* taken : {&all_, &own->second}) {
    --taken->regions;
    taken->bytes -= part.bytes;
  }
  if (own->second.regions == 0) taken_.erase(own);
}

absl::StatusOr<RegionShares::Share> RegionShares::begin(uid_t user) {
  const std::lock_guard lock(mutex_);
  if (all_.regions >= limits_.max_regions)
    return over("max_regions", "shared regions", all_.regions + 1, limits_.max_regions);
  Taken& own = taken_[user];
  if (own.regions >= limits_.max_regions_per_user) {
    return over("max_regions_per_user", concat("shared regions of user ", user), own.regions + 1,
                limits_.max_regions_per_user);
  }
  ++all_.regions;
  ++own.regions;
  return Share(shared_from_this(), {.user = user});
}

absl::Status RegionShares::set_bytes(Share& share, std::size_t bytes) {
  Part& part = share.part();
  const std::lock_guard lock(mutex_);
  Taken& own = taken_.at(part.user);
  const std::size_t all_others = all_.bytes - part.bytes;
  const std::size_t own_others = own.bytes - part.bytes;
  if (bytes > limits_.max_bytes || all_others > limits_.max_bytes - bytes)
    return over("max_bytes", "bytes of shared regions", all_others + bytes, limits_.max_bytes);
  if (bytes > limits_.max_bytes_per_user || own_others > limits_.max_bytes_per_user - bytes) {
    return over("max_bytes_per_user", concat("bytes of shared regions of user ", part.user),
                own_others + bytes, limits_.max_bytes_per_user);
  }
  all_.bytes = all_others + bytes;
  own.bytes = own_others + bytes;
  part.bytes = bytes;
  return absl::OkStatus();
}

std::size_t RegionShares::regions() const {
  const std::lock_guard lock(mutex_);
  return all_.regions;
}

std::size_t RegionShares::bytes() const {
  const std::lock_guard lock(mutex_);
  return all_.bytes;
}

}  // namespace cumulus::server
