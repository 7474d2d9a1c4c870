#pragma once

// Marks functions that host and CUDA device share.
#if defined(__CUDACC__)
#define CUMULUS_HOST_DEVICE __host__ __device__
#else
#define CUMULUS_HOST_DEVICE
#endif
