#include "server/runtime/exceptions.h"

#include <exception>
#include <new>

#include "kernels/core/cuda_error.h"
#include "kernels/core/interrupt.h"
#include "proto/steady_time.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {

absl::Status translate_exception(Device& device, absl::Time deadline) {
  try {
    throw;
  } catch (const Interrupted&) {
    if (deadline <= steady_now())
      return absl::DeadlineExceededError("the deadline passed while the request ran");
    return absl::CancelledError("the client cancelled the request");
  } catch (const CudaError& error) {
    if (error.out_of_memory()) {
      return exhausted(
          device.budget()->subject(),
          concat(device.name(), " has no memory left for this request, although its budget has; other ",
                 "programs may hold it: end them, or try a smaller request (", error.what(), ")"));
    }
    return device.fault(error);
  } catch (const std::bad_alloc&) {
    return exhausted(device.budget()->subject(),
                     "the machine has no memory left for this request; try a smaller one");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace cumulus::server
