"""Kernels for `Client.filter`, one for each axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Sequence, Union

from .arrays import choose
from .errors import wrong
from .v1 import recursive_filter_pb2 as wire


@dataclass(frozen=True)
class Gaussian:
    """Of standard deviation `sigma` pixels, 0.5 to 10000, or its derivative (1, 2) along the axis.

    `method` is 'fir' (positive weights: never negative, each pixel within 2e-6 of itself, also beside a sun; along both
    axes or along one alone), 'deriche' (within 0.03 % of the true Gaussian's peak for a sigma of 0.7 or more), 'young'
    (three poles, less work, within 4 %), or 'auto': 'fir', and 'deriche' where that cannot do the call (derivatives,
    another kernel along the other axis, an algorithm or a max_truncation_error of recursive filters).
    """

    sigma: float
    method: str = "auto"
    derivative: int = 0


@dataclass(frozen=True)
class BsplinePrefilter:
    """Turns samples into the coefficients of the B-spline through them; degree 3 or 5."""

    degree: int = 3


@dataclass(frozen=True)
class Exponential:
    """y[i] = (1 - decay) x[i] + decay y[i - 1], then the same from the other end; 0 to 0.99999."""

    decay: float


@dataclass(frozen=True)
class Feedback:
    """y[i] = gain x[i] - causal[0] y[i - 1] - ..., then z[i] = y[i] - anticausal[0] z[i + 1] - ...

    At most 5 coefficients either way, with poles within 0.99999 of the origin. Without a gain, the one that leaves a
    constant image as it is.
    """

    causal: Sequence[float] = ()
    anticausal: Sequence[float] = ()
    gain: Optional[float] = None


Kernel = Union[Gaussian, BsplinePrefilter, Exponential, Feedback]


def write_axis(axis: Any, kernel: Kernel, boundary: str, field: str) -> None:
    """Fills in an AxisFilter."""
    axis.boundary = choose(wire.FilterBoundary, "FILTER_", boundary, "boundary")
    if isinstance(kernel, Gaussian):
        axis.gaussian.sigma = kernel.sigma
        if kernel.method != "auto":
            axis.gaussian.method = choose(wire.GaussianMethod, "GAUSSIAN_", kernel.method, "method")
        axis.gaussian.derivative = kernel.derivative
    elif isinstance(kernel, BsplinePrefilter):
        axis.bspline_prefilter.degree = kernel.degree
    elif isinstance(kernel, Exponential):
        axis.exponential.decay = kernel.decay
        axis.exponential.SetInParent()
    elif isinstance(kernel, Feedback):
        axis.feedback.causal.extend(kernel.causal)
        axis.feedback.anticausal.extend(kernel.anticausal)
        if kernel.gain is not None:
            axis.feedback.gain = kernel.gain
        axis.feedback.SetInParent()
    else:
        raise wrong(field, f"is {kernel!r}", "a Gaussian, BsplinePrefilter, Exponential or Feedback")
