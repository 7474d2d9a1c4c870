#pragma once

// Bounds of distances that are cheaper than the distances that results have.

namespace cumulus::kd_tree {

/// Numbers of FLOAT64 as FLOAT32, moved outwards.
__device__ inline float rounded_up(float x) { return x; }
__device__ inline float rounded_up(double x) { return __double2float_ru(x); }
__device__ inline float rounded_down(float x) { return x; }
__device__ inline float rounded_down(double x) { return __double2float_rd(x); }

/// Squares of at most 8 axes, summed by fused operations or each rounded, are within 8 units of 2^-24
/// (FLOAT64: 2^-53) of their true sum, or as many of the least number where they are too small. So what is
/// `squared` by one of these sums is at most that by the other.
__device__ inline float fused_bound(float squared) { return fmaf(squared, 1.0f + 0x1p-19f, 0x1p-140f); }
__device__ inline double fused_bound(double squared) { return fma(squared, 1.0 + 0x1p-48, 0x1p-1060); }

}  // namespace cumulus::kd_tree
