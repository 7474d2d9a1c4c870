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
    taken->device_bytes -= part.device_bytes;
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
  return set_counted(share,
                     {.what = "bytes of shared regions",
                      .name = "max_bytes",
                      .all = limits_.max_bytes,
                      .own_name = "max_bytes_per_user",
                      .own = limits_.max_bytes_per_user,
                      .part = &Part::bytes,
                      .taken = &Taken::bytes},
                     bytes);
}

absl::Status RegionShares::set_device_bytes(Share& share, std::size_t bytes) {
  if (limits_.max_device_bytes == 0) {
    return no_answer(
        "DEVICE_MEMORY_NOT_SHARED",
        "this server shares no GPU memory: shared_memory.max_device_bytes (--shared-device-memory) "
        "is 0; it has to say how many bytes of it clients may map");
  }
  return set_counted(share,
                     {.what = "bytes of shared GPU memory",
                      .name = "max_device_bytes",
                      .all = limits_.max_device_bytes,
                      .own_name = "max_device_bytes_per_user",
                      .own = limits_.max_device_bytes_per_user,
                      .part = &Part::device_bytes,
                      .taken = &Taken::device_bytes},
                     bytes);
}

absl::Status RegionShares::set_counted(Share& share, const ByteLimit& limit, std::size_t bytes) {
  Part& part = share.part();
  const std::lock_guard lock(mutex_);
  Taken& own = taken_.at(part.user);
  const std::size_t all_others = all_.*limit.taken - part.*limit.part;
  const std::size_t own_others = own.*limit.taken - part.*limit.part;
  if (bytes > limit.all || all_others > limit.all - bytes)
    return over(limit.name, limit.what, all_others + bytes, limit.all);
  if (bytes > limit.own || own_others > limit.own - bytes)
    return over(limit.own_name, concat(limit.what, " of user ", part.user), own_others + bytes, limit.own);
  all_.*limit.taken = all_others + bytes;
  own.*limit.taken = own_others + bytes;
  part.*limit.part = bytes;
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

std::size_t RegionShares::device_bytes() const {
  const std::lock_guard lock(mutex_);
  return all_.device_bytes;
}

}  // namespace cumulus::server
