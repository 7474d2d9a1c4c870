#include "cli/commands/bench_calls/limit_starts.h"

#include <absl/strings/str_cat.h>
#include <dlfcn.h>

#include "cli/commands/bench_calls/limit_rows.h"
#include "cli/commands/bench_calls/self.h"

namespace cumulus::cli {
namespace {

/// A function of the driver's interface, with integers and pointers for its own types: this program is built
/// without CUDA too.
template <class Function>
Function* find(void* driver, const char* name) {
  return driver == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(driver, name));
}

absl::StatusOr<std::string> backend_of(Job& job) {
  const absl::StatusOr<Client> client = job.connect();
  if (!client.ok()) return client.status();
  const absl::StatusOr<Capabilities> capabilities = client->capabilities(job.call());
  if (!capabilities.ok()) return capabilities.status();
  for (const DeviceInfo& device : capabilities->devices) {
    if (device.backend == "cuda") return device.backend;
  }
  return std::string("cpu");
}

}  // namespace

absl::Status make_context(const std::string& backend) {
  if (backend != "cuda") return absl::OkStatus();
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto init = find<int(unsigned)>(driver, "cuInit");
  const auto get_device = find<int(int*, int)>(driver, "cuDeviceGet");
  const auto retain = find<int(void**, int)>(driver, "cuDevicePrimaryCtxRetain");
  if (init == nullptr || get_device == nullptr || retain == nullptr)
    return absl::UnavailableError("there is no CUDA driver: libcuda.so.1 was not found, or is not whole");
  int device = 0;
  void* context = nullptr;
  int error = init(0);
  if (error == 0) error = get_device(&device, 0);
  if (error == 0) error = retain(&context, device);
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the CUDA driver makes no context: error ", error));
}

absl::Status add_start_limit(Job& job, const LimitOptions& options, std::vector<Report>& rows) {
  const absl::StatusOr<std::string> backend = backend_of(job);
  if (!backend.ok()) return backend.status();
  const auto times = in_turns(
      options.repeat, [&] { return timed([&] {
                              return run_self({"--backend", *backend, "health"});
                            }); },
      [&] { return timed([&] {
              return run_self({"bench-context", *backend});
            }); });
  if (!times.ok()) return times.status();
  rows.push_back(
      limit_row("a private daemon starts, answers and ends", times->first,
                *backend == "cuda" ? "a program that makes a CUDA context" : "a program that starts and ends",
                times->second));
  return absl::OkStatus();
}

}  // namespace cumulus::cli
