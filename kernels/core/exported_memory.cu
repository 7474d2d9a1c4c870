#include <cuda.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "kernels/core/cuda_executor.h"
#include "kernels/core/exported_memory.h"

namespace cumulus {
namespace {

/// A function of the driver, which this library does not link: it is loaded where there is a GPU only.
template <class Function>
Function* driver_function(const char* name) {
  constexpr unsigned int kVersion = 12000;  // of CUDA, whose form of the function is meant
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  CUMULUS_CUDA(cudaGetDriverEntryPointByVersion(name, &function, kVersion, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess) CUMULUS_CUDA(cudaErrorSymbolNotFound);
  return reinterpret_cast<Function*>(function);
}

struct Driver {
  decltype(cuMemCreate)* create = driver_function<decltype(cuMemCreate)>("cuMemCreate");
  decltype(cuMemRelease)* release = driver_function<decltype(cuMemRelease)>("cuMemRelease");
  decltype(cuMemExportToShareableHandle)* export_handle =
      driver_function<decltype(cuMemExportToShareableHandle)>("cuMemExportToShareableHandle");
  decltype(cuMemAddressReserve)* reserve_address =
      driver_function<decltype(cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(cuMemAddressFree)* free_address = driver_function<decltype(cuMemAddressFree)>("cuMemAddressFree");
  decltype(cuMemMap)* map = driver_function<decltype(cuMemMap)>("cuMemMap");
  decltype(cuMemUnmap)* unmap = driver_function<decltype(cuMemUnmap)>("cuMemUnmap");
  decltype(cuMemSetAccess)* set_access = driver_function<decltype(cuMemSetAccess)>("cuMemSetAccess");
};

const Driver& driver() {
  static const Driver kFunctions;
  return kFunctions;
}

/// An allocation, as far as it has come.
struct Allocation {
  int ordinal = 0;
  std::size_t bytes = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  bool created = false;
  bool mapped = false;

  Allocation(int its_ordinal, std::size_t its_bytes) : ordinal(its_ordinal), bytes(its_bytes) {}
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  // Runs in destructors: an error here is that of a lost context, which the next call reports.
  ~Allocation() {
    (void)cudaSetDevice(ordinal);
    if (mapped) (void)driver().unmap(address, bytes);
    if (created) (void)driver().release(handle);
    if (address != 0) (void)driver().free_address(address, bytes);
  }
};

void create(Allocation& allocation) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = allocation.ordinal};
  CUMULUS_CUDA(driver().create(&allocation.handle, allocation.bytes, &properties, 0));
  allocation.created = true;
}

void map(Allocation& allocation) {
  CUMULUS_CUDA(driver().reserve_address(&allocation.address, allocation.bytes, 0, 0, 0));
  CUMULUS_CUDA(driver().map(allocation.address, allocation.bytes, 0, allocation.handle, 0));
  allocation.mapped = true;
  const CUmemAccessDesc access{.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = allocation.ordinal},
                               .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUMULUS_CUDA(driver().set_access(allocation.address, allocation.bytes, &access, 1));
}

void give_back(void* allocation, std::byte* /*data*/, std::size_t /*bytes*/) {
  delete static_cast<Allocation*>(allocation);
}

}  // namespace

ExportedMemory allocate_exported(const CudaDevice& device, std::size_t bytes) {
  CUMULUS_CUDA(cudaSetDevice(device.ordinal()));
  auto allocation = std::make_unique<Allocation>(device.ordinal(), bytes);
  create(*allocation);
  map(*allocation);
  auto* const data = reinterpret_cast<std::byte*>(allocation->address);
  // On the legacy stream, for which no stream of an executor waits.
  CUMULUS_CUDA(cudaMemsetAsync(data, 0, bytes, nullptr));
  CUMULUS_CUDA(cudaStreamSynchronize(nullptr));
  int descriptor = -1;
  CUMULUS_CUDA(
      driver().export_handle(&descriptor, allocation->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  return {{data, bytes, allocation.release(), give_back}, descriptor};
}

}  // namespace cumulus
