#pragma once

#include <absl/status/status.h>
#include <cuda.h>

#include <string_view>

namespace cumulus {

/// What is used of the driver, which is loaded and not linked: a program that never shares GPU memory starts
/// without it.
struct CudaDriver {
  decltype(::cuInit)* init = nullptr;
  decltype(::cuGetErrorString)* error_string = nullptr;
  decltype(::cuCtxGetDevice)* current_device = nullptr;
  decltype(::cuStreamSynchronize)* synchronize_stream = nullptr;
  decltype(::cuMemImportFromShareableHandle)* import_handle = nullptr;
  decltype(::cuMemGetAllocationPropertiesFromHandle)* properties_of = nullptr;
  decltype(::cuMemRelease)* release = nullptr;
  decltype(::cuMemAddressReserve)* reserve_address = nullptr;
  decltype(::cuMemAddressFree)* free_address = nullptr;
  decltype(::cuMemMap)* map = nullptr;
  decltype(::cuMemUnmap)* unmap = nullptr;
  decltype(::cuMemSetAccess)* set_access = nullptr;

  /// Null where there is none, or it is too old.
  static const CudaDriver* load();
  /// OK, or INTERNAL with what was done and the driver's own words.
  absl::Status check(CUresult result, std::string_view what) const;
};

}  // namespace cumulus
