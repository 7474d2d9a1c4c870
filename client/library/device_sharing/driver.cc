#include "library/device_sharing/driver.h"

#include <absl/strings/str_cat.h>
#include <dlfcn.h>

#include <memory>
#include <string>

namespace cumulus {
namespace {

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

std::unique_ptr<const CudaDriver> load_once() {
  void* const library =
      ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // never closed: threads of it may run
  if (library == nullptr) return nullptr;
  auto driver = std::make_unique<CudaDriver>();
  const bool all =
      find(library, "cuInit", driver->init) && find(library, "cuGetErrorString", driver->error_string) &&
      find(library, "cuCtxGetDevice", driver->current_device) &&
      find(library, "cuStreamSynchronize", driver->synchronize_stream) &&
      find(library, "cuMemImportFromShareableHandle", driver->import_handle) &&
      find(library, "cuMemGetAllocationPropertiesFromHandle", driver->properties_of) &&
      find(library, "cuMemRelease", driver->release) &&
      find(library, "cuMemAddressReserve", driver->reserve_address) &&
      find(library, "cuMemAddressFree", driver->free_address) && find(library, "cuMemMap", driver->map) &&
      find(library, "cuMemUnmap", driver->unmap) && find(library, "cuMemSetAccess", driver->set_access);
  if (!all || driver->init(0) != CUDA_SUCCESS) return nullptr;
  return driver;
}

}  // namespace

const CudaDriver* CudaDriver::load() {
  static const std::unique_ptr<const CudaDriver> kDriver = load_once();
  return kDriver.get();
}

absl::Status CudaDriver::check(CUresult result, std::string_view what) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* words = nullptr;
  if (error_string(result, &words) != CUDA_SUCCESS) words = "an unknown error";
  return absl::InternalError(absl::StrCat(std::string(what), ": ", words));
}

}  // namespace cumulus
