#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/runtime/descriptor.h"
#include "server/runtime/principal.h"
#include "server/runtime/runtime.h"
#include "server/runtime/shared_memory/link.h"
#include "server/runtime/shared_memory/region_calls.h"
#include "server/runtime/shared_memory/region_shares.h"

namespace cumulus::server {

/// Where clients of this machine get memory that they share with the server: a Unix socket, and a thread for
/// each client's connection. Only processes of this process's user, and of the configured group, get some.
class SharedMemorySocket final : private RegionCalls {
 public:
  /// Serves as runtime.configuration.shared_memory says; null where that is not at all. INVALID_ARGUMENT
  /// naming the setting that cannot be used.
  static absl::StatusOr<std::unique_ptr<SharedMemorySocket>> start(Runtime& runtime);
  /// Ends all links.
  ~SharedMemorySocket() override;
  SharedMemorySocket(const SharedMemorySocket&) = delete;
  SharedMemorySocket& operator=(const SharedMemorySocket&) = delete;

  /// Takes the path away, so that none is left when the process ends; links stay.
  void withdraw() const;

  /// A path, or @NAME of the abstract namespace.
  const std::string& address() const { return address_; }
  /// The link of that region; NOT_FOUND where there is none, or it is another caller's.
  absl::StatusOr<std::shared_ptr<SharedLink>> find(const std::string& region, const Principal& caller);
  const RegionShares& shares() const { return *shares_; }
  /// Who begins the transfers that come on regions' connections; null: nobody, and none is begun any more.
  void begin_calls_by(RegionCalls* calls);

 private:
  struct Worker {
    std::shared_ptr<SharedLink> link;
    std::thread thread;
    bool done = false;  // guarded by mutex_
  };

  SharedMemorySocket(Runtime& runtime, std::string address, Descriptor listener, std::optional<gid_t> group);
  absl::Status begin(const std::shared_ptr<SharedLink>& link, const Principal& caller, Asked asked) override;
  std::shared_ptr<EarlyCopy> begin_early(const std::shared_ptr<SharedRegion>& region, const Principal& caller,
                                         std::size_t bytes) override;
  void run();
  /// So that the thread looks what there is to do.
  void wake() const;
  void accept_one();
  void serve(Worker& worker);
  void join_done();

  Runtime& runtime_;
  const std::string address_;
  const Descriptor listener_;
  const std::optional<gid_t> group_;
  const std::shared_ptr<RegionShares> shares_;
  SpareRing spare_;
  const Descriptor wake_;
  std::shared_mutex calls_mutex_;  // shared while one is begun
  RegionCalls* calls_ = nullptr;
  std::mutex mutex_;  // of what follows
  std::list<Worker> workers_;
  std::map<std::string, std::shared_ptr<SharedLink>> links_;  // by their regions' ids
  std::atomic<bool> stopping_ = false;
  std::thread thread_;  // last, as it uses the others
};

}  // namespace cumulus::server
