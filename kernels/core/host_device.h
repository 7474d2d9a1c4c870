#pragma once

// Marks functions that host and CUDA device share. The installed headers of kernels/sampling_table have the
// same macro in their own cumulus/host_device.h, since they are used without this project.
#if defined(__CUDACC__)
#define CUMULUS_HOST_DEVICE __host__ __device__
#else
#define CUMULUS_HOST_DEVICE
#endif
