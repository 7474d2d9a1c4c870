#include "library/device_sharing/mapping.h"

#include <absl/strings/str_cat.h>

#include "library/device_sharing/driver.h"

namespace cumulus {

absl::Status check_cuda_context() {
  const CudaDriver* const driver = CudaDriver::load();
  if (driver == nullptr) {
    return absl::FailedPreconditionError(
        "GPU memory cannot be shared: this machine has no CUDA driver (libcuda.so.1) that works; without "
        "one, "
        "download the array (Session::download)");
  }
  CUdevice device = 0;
  if (driver->current_device(&device) == CUDA_SUCCESS) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "GPU memory cannot be shared: no CUDA context is current on this thread; call cudaSetDevice() before");
}

absl::Status wait_for_stream(CUstream_st* stream) {
  const CudaDriver& driver = *CudaDriver::load();
  return driver.check(driver.synchronize_stream(stream), "waiting for what writes the array");
}

absl::StatusOr<std::unique_ptr<DeviceMapping>> DeviceMapping::map(int descriptor, std::size_t bytes,
                                                                  Access access) {
  const CudaDriver& driver = *CudaDriver::load();
  CUdevice device = 0;
  if (absl::Status found = driver.check(driver.current_device(&device), "cuCtxGetDevice"); !found.ok())
    return found;
  std::unique_ptr<DeviceMapping> mapping(new DeviceMapping(bytes));
  if (absl::Status imported = mapping->import_allocation(descriptor); !imported.ok()) return imported;
  CUmemAllocationProp properties{};
  if (absl::Status read = driver.check(driver.properties_of(&properties, mapping->handle_),
                                       "cuMemGetAllocationPropertiesFromHandle");
      !read.ok())
    return read;
  if (properties.location.id != device) {
    return absl::FailedPreconditionError(
        absl::StrCat("the session's GPU is device ", properties.location.id, " of this program, and device ",
                     device, " is current on this thread; call cudaSetDevice() before"));
  }
  if (absl::Status mapped = mapping->map_at_an_address(device, access); !mapped.ok()) return mapped;
  return mapping;
}

absl::Status DeviceMapping::import_allocation(int descriptor) {
  const CudaDriver& driver = *CudaDriver::load();
  CUmemGenericAllocationHandle handle = 0;
  void* const file = reinterpret_cast<void*>(static_cast<std::uintptr_t>(descriptor));
  const CUresult result = driver.import_handle(&handle, file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  handle_ = handle;
  imported_ = result == CUDA_SUCCESS;
  return driver.check(result, "cuMemImportFromShareableHandle");
}

absl::Status DeviceMapping::map_at_an_address(int device, Access access) {
  const CudaDriver& driver = *CudaDriver::load();
  CUdeviceptr address = 0;
  if (absl::Status reserved =
          driver.check(driver.reserve_address(&address, reserved_bytes(), 0, 0, 0), "cuMemAddressReserve");
      !reserved.ok())
    return reserved;
  reserved_ = address;
  const CUresult result = driver.map(place(), bytes_, 0, handle_, 0);
  mapped_ = result == CUDA_SUCCESS;
  if (!mapped_) return driver.check(result, "cuMemMap");
  const CUmemAccessDesc rights{
      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
      .flags = access == Access::kRead ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return driver.check(driver.set_access(place(), bytes_, &rights, 1), "cuMemSetAccess");
}

// An error here is that of a context that is lost.
DeviceMapping::~DeviceMapping() {
  const CudaDriver& driver = *CudaDriver::load();
  if (mapped_) (void)driver.unmap(place(), bytes_);
  if (imported_) (void)driver.release(handle_);
  if (reserved_ != 0) (void)driver.free_address(reserved_, reserved_bytes());
}

}  // namespace cumulus
