"""Importance tables in Mitsuba 3: the emitter `cumulus_envmap`, in place of `envmap`.

```python
import mitsuba as mi
mi.set_variant("scalar_rgb")
import cumulus.mitsuba

with cumulus.connect() as c:
    cumulus.mitsuba.register(c)
    light = mi.load_dict({"type": "cumulus_envmap", "filename": "sky.exr"})
```

Radiance is looked up by Mitsuba's own `envmap`; the table's density is the same bilinear function as its importance
(luminance times the sine of the polar angle), so that sampling, pdf and lookup agree. Tables are built on the server:
anew when `envmap.data` changes, for a video for instance. Set Mitsuba's variant before this module is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Tuple

try:
    import drjit as dr
    import mitsuba as mi
except ModuleNotFoundError as problem:
    if problem.name not in ("drjit", "mitsuba"):
        raise
    raise ModuleNotFoundError(f"cumulus.mitsuba is an emitter for Mitsuba 3, of which there is no {problem.name} here: pip install mitsuba",
                              name=problem.name) from problem
import numpy as np

from .arrays import NDArray
from .sampling_table import SamplingTable

if TYPE_CHECKING:
    from .client import Client

_LUMINANCE = (0.212671, 0.715160, 0.072169)  # Mitsuba's own
_WHOLE = 4294967296.0
_EMPTY_TAIL = 4294967295.0
_FAR = 1e8  # beyond what may hide the light: Mitsuba tells emitters in Python nothing of their scene

_client: Optional["Client"] = None


def _luminance(pixels: NDArray) -> NDArray:
    """Of [height, width], or of the 1, 3 or 4 numbers a pixel of an `envmap`; 4 are a spectrum's coefficients and scale."""
    if pixels.ndim == 2 or pixels.shape[2] == 1:
        return pixels.reshape(pixels.shape[:2])
    if pixels.shape[2] == 3:
        return np.asarray(pixels @ np.asarray(_LUMINANCE, np.float32))
    wavelengths = np.linspace(mi.MI_CIE_MIN, mi.MI_CIE_MAX, 16, dtype=np.float32)
    a, b, c, scale = np.moveaxis(pixels[..., None], 2, 0)
    x = (a * wavelengths + b) * wavelengths + c
    return np.asarray(scale[..., 0] * (0.5 + 0.5 * x / np.sqrt(1 + x * x)).mean(-1), np.float32)


def importance(image: NDArray, mis_compensation: bool = False) -> NDArray:
    """What a map is sampled by, float32 [height, width + 2]: luminance times the sine of the polar angle.

    Mitsuba's rows reach from pole to pole, its columns close on themselves. The two columns of zeros make them do so in a
    table of the plane: what rises from the first over the seam and what falls to the last add up to the interpolation
    across it.
    """
    light = _luminance(np.asarray(image, np.float32))
    if mis_compensation:
        mean = np.float32(light.mean(dtype=np.float64))
        if mean - light.min() > 0.01 * mean:
            light = np.maximum(light - mean, 0)
    weights = light * np.sin(np.arange(len(light)) * np.pi / (len(light) - 1))[:, None]
    weights[[0, -1]] = 0  # sin(pi) is not quite 0
    return np.pad(np.maximum(weights, 0), ((0, 0), (1, 1))).astype(np.float32)


def build_table(client: "Client", image: NDArray, mis_compensation: bool = False) -> SamplingTable:
    """The table of a lat-long map for `cumulus_envmap`, fetched from the server that built it."""
    return client.sampling_table(importance(image, mis_compensation), projection="plane", interpolation="bilinear",
                                 method="binary-search").local()


class _Axis:
    """Cells between the centres of texels along one side, and how many halves of texels there are."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.units = 2.0 * (cells - 1)

    def edge(self, k: Any) -> Any:
        inside = 2.0 * mi.Float64(k) - 1.0
        return dr.select(k == 0, 0.0, dr.select(k == self.cells, self.units, inside))

    def cell_of(self, position: Any) -> Any:
        halves = mi.UInt32(dr.clip(position, 0.0, 1.0) * self.units)
        return dr.minimum((halves + 1) // 2, self.cells - 1)

    def share_before(self, k: Any, position: Any) -> Any:
        begin = self.edge(k)
        return dr.clip((position * self.units - begin) / (self.edge(k + 1) - begin), 0.0, 1.0)

    def position_of(self, k: Any, share: Any) -> Any:
        begin = self.edge(k)
        return (begin + share * (self.edge(k + 1) - begin)) / self.units


def _invert_linear(first: Any, last: Any, x: Any) -> Any:
    """Maps x to the density on [0, 1] that grows linearly from `first` to `last`."""
    root = dr.sqrt(first * first * (1.0 - x) + last * last * x)
    return dr.clip(x * (first + last) / dr.maximum(first + root, 1e-300), 0.0, 1.0)


def _held(kind: Any, array: NDArray) -> Any:
    """An array to gather from: in memory of Dr.Jit's, or, of scalar variants, a list of numbers."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return kind(flat) if dr.is_jit_v(mi.Float) else flat.tolist()


def _gather(kind: Any, array: Any, index: Any) -> Any:
    return dr.gather(kind, array, index) if dr.is_jit_v(mi.Float) else array[index]


class TableWarp:
    """A bilinear table of the plane in Dr.Jit, of any variant: cumulus/sampling.h's search and interpolation."""

    def __init__(self, table: SamplingTable) -> None:
        view = table._view(0)
        self.columns, self.rows = _Axis(view.header.width), _Axis(view.header.height)
        self._marginal = _held(mi.UInt32, view.marginal)
        self._row_bounds = _held(mi.UInt32, view.rows)
        self._vertices = _held(mi.Float, view.vertices)

    def _bounds(self, bounds: Any, first: Any, index: Any, count: int) -> Tuple[Any, Any]:
        """Where a cell's mass begins and how much it is, in units of 2^-32, double."""
        begin = mi.Float64(_gather(mi.UInt32, bounds, first + index))
        behind = mi.Float64(_gather(mi.UInt32, bounds, first + dr.minimum(index + 1, count - 1)))
        end = dr.select((index + 1 >= count) | (behind == _EMPTY_TAIL), _WHOLE, behind)
        begin = dr.select(begin == _EMPTY_TAIL, _WHOLE, begin)
        return begin, dr.maximum(end - begin, 0.0)

    def _find(self, bounds: Any, first: Any, count: int, x: Any) -> Tuple[Any, Any, Any]:
        """The cell of x in [0, 1), its mass, and where in it x lies."""
        place = dr.clip(mi.Float64(x) * _WHOLE, 0.0, _EMPTY_TAIL - 1.0)
        low, high = mi.UInt32(0), mi.UInt32(count - 1)
        for _ in range((count - 1).bit_length()):
            middle = low + (high - low + 1) // 2
            below = mi.Float64(_gather(mi.UInt32, bounds, first + middle)) <= place
            high = dr.select(below, high, dr.maximum(middle, 1) - 1)
            low = dr.select(below, middle, low)
        begin, mass = self._bounds(bounds, first, low, count)
        return low, mass, dr.clip((place + 0.5 - begin) / dr.maximum(mass, 1.0), 0.0, 1.0)

    def _corners(self, y: Any, x: Any) -> Tuple[Any, Any, Any, Any]:
        wide = self.columns.cells + 1
        above = y * wide + x
        read = (_gather(mi.Float, self._vertices, index) for index in (above, above + 1, above + wide,
                                                                         above + wide + 1))
        top_left, top_right, bottom_left, bottom_right = (mi.Float64(value) for value in read)
        return top_left, top_right, bottom_left, bottom_right

    def sample(self, point: Any) -> Tuple[Any, Any]:
        """Maps a point of the unit square to one of the table, double."""
        y, _, fraction_y = self._find(self._marginal, mi.UInt32(0), self.rows.cells, point.y)
        x, _, fraction_x = self._find(self._row_bounds, y * self.columns.cells, self.columns.cells, point.x)
        top_left, top_right, bottom_left, bottom_right = self._corners(y, x)
        down = _invert_linear(top_left + top_right, bottom_left + bottom_right, fraction_y)
        left = top_left + (bottom_left - top_left) * down
        right = top_right + (bottom_right - top_right) * down
        across = _invert_linear(left, right, fraction_x)
        return self.columns.position_of(x, across), self.rows.position_of(y, down)

    def density(self, u: Any, v: Any) -> Any:
        """Per unit of area of the table's square, double."""
        y, x = self.rows.cell_of(v), self.columns.cell_of(u)
        _, row = self._bounds(self._marginal, mi.UInt32(0), y, self.rows.cells)
        _, column = self._bounds(self._row_bounds, y * self.columns.cells, x, self.columns.cells)
        top_left, top_right, bottom_left, bottom_right = self._corners(y, x)
        across, down = self.columns.share_before(x, u), self.rows.share_before(y, v)
        left = top_left + (bottom_left - top_left) * down
        right = top_right + (bottom_right - top_right) * down
        mean = ((top_left + top_right) + (bottom_left + bottom_right)) * 0.25
        wide = (self.columns.edge(x + 1) - self.columns.edge(x)) / self.columns.units
        high = (self.rows.edge(y + 1) - self.rows.edge(y)) / self.rows.units
        value = row * column / (_WHOLE * _WHOLE) / (wide * high)
        return dr.select(mean > 0.0, value * (left * (1.0 - across) + right * across) / dr.maximum(mean, 1e-300), 0.0)


class EnvmapWarp:
    """The density of a lat-long map of `width` x `height` in Mitsuba's uv, of a table of `importance`."""

    def __init__(self, table: SamplingTable) -> None:
        self._warp = TableWarp(table)
        self.width = self._warp.columns.cells - 3  # a cell more than texels, two texels more than columns
        self.height = self._warp.rows.cells - 1

    def sample(self, point: Any) -> Any:
        """Maps a point of the unit square to uv."""
        u, v = self._warp.sample(point)
        column = u * (self.width + 2) - 1.5  # -1 to width; on the seam two columns of zeros rise and fall
        across = (column + 0.5) / self.width
        down = dr.clip((v * self.height - 0.5) / (self.height - 1), 0.0, 1.0)
        return mi.Point2f(mi.Float(across - dr.floor(across)), mi.Float(down))

    def density(self, uv: Any) -> Any:
        """Per unit of area of uv."""
        across = mi.Float64(uv.x) - 0.5 / self.width
        column = (across - dr.floor(across)) * self.width
        v = (mi.Float64(uv.y) * (self.height - 1) + 0.5) / self.height
        wide = self.width + 2
        first = self._warp.density((column + 1.5) / wide, v)
        second = self._warp.density(dr.maximum(column - self.width + 1.5, 0.0) / wide, v)
        both = first + dr.select(column > self.width - 1, second, 0.0)
        return both / (wide * self.height) * (self.width * (self.height - 1))


class ExactLookup:
    """An `envmap`'s radiance, of rgb and mono variants, interpolated in float32.

    In place of its own lookup in CUDA's variants, where texture units weight texels in steps of 1/256: that alone makes
    a sample's light deviate by several times what density and interpolation leave.
    """

    def __init__(self, envmap: Any, warp: EnvmapWarp) -> None:
        parameters = mi.traverse(envmap)
        data = parameters["data"]
        self._scale = parameters["scale"]
        self._height, self._stored, self._channels = data.shape
        self._width = warp.width
        self._first = 1 if self._stored == warp.width + 2 else 0  # what Mitsuba repeats beyond the seam: on each side, or at the end
        self._texels = data.array if dr.is_jit_v(mi.Float) else np.array(data).reshape(-1).tolist()

    @staticmethod
    def is_needed() -> bool:
        return "cuda" in (mi.variant() or "") and not (mi.is_spectral or mi.is_polarized)

    def _texel(self, x: Any, y: Any) -> Any:
        first = (y * self._stored + x + self._first) * self._channels
        return [_gather(mi.Float, self._texels, first + channel) for channel in range(3 if mi.is_rgb else 1)]

    def at(self, uv: Any, active: Any) -> Any:
        """At uv in [0, 1]."""
        across, down = uv.x * self._width - 0.5, uv.y * (self._height - 1)
        column, y = dr.floor(across), mi.UInt32(dr.clip(down, 0.0, self._height - 2.0))
        left = mi.UInt32(dr.select(column < 0, self._width - 1, column))
        right = dr.select(left + 1 >= self._width, 0, left + 1)
        x_share, y_share = across - column, down - mi.Float(y)
        rows = []
        for row in (y, y + 1):
            pairs = zip(self._texel(left, row), self._texel(right, row))
            rows.append([a + (b - a) * x_share for a, b in pairs])
        light = [(a + (b - a) * y_share) * self._scale for a, b in zip(*rows)]
        return dr.select(active, mi.Spectrum(*light), 0.0)


class CumulusEnvmap(mi.Emitter):
    """The emitter `cumulus_envmap`: parameters of `envmap` (filename, bitmap, scale, to_world, mis_compensation).

    Also `table`: the path of a .cst file of `build_table`, so that no server is needed.
    """

    def __init__(self, props: Any) -> None:
        super().__init__(props)
        self.m_flags = mi.EmitterFlags.Infinite | mi.EmitterFlags.SpatiallyVarying
        inner = {"type": "envmap"}
        for name in ("filename", "bitmap", "scale", "to_world"):
            if name in props:
                inner[name] = props[name]
        self._mis_compensation = bool(props.get("mis_compensation", False))
        # Properties hold doubles, of which Dr.Jit's arrays have no transform.
        self._to_world = mi.Transform4f(np.array(props.get("to_world", mi.ScalarTransform4f()).matrix, np.float32))
        self._from_world = self._to_world.inverse()
        self._envmap = mi.load_dict(inner)
        self._sphere: Optional[Tuple[Any, float]] = None
        table = props.get("table", "")
        self._warp = EnvmapWarp(SamplingTable.from_bytes(_read(table))) if table else self._built()
        self._lookup = self._looked_up()

    def _built(self) -> EnvmapWarp:
        if _client is None:
            raise RuntimeError("cumulus_envmap: there is no server; call cumulus.mitsuba.register(client), or name a "
                               "'table'")
        data = _columns(np.array(mi.traverse(self._envmap)["data"]))
        return EnvmapWarp(build_table(_client, data, self._mis_compensation))

    def _looked_up(self) -> Optional[ExactLookup]:
        """None: Mitsuba's own lookup is exact."""
        return ExactLookup(self._envmap, self._warp) if ExactLookup.is_needed() else None

    def traverse(self, callback: Any) -> None:
        callback.put("envmap", self._envmap, mi.ParamFlags.NonDifferentiable)

    def parameters_changed(self, keys: Any = ()) -> None:
        if not keys or "envmap" in keys:
            self._warp = self._built()
            self._lookup = self._looked_up()

    def set_scene(self, scene: Any) -> None:
        """Says where rays of light are to begin. `sample_ray` needs it, and Mitsuba does not call it for emitters in Python."""
        around = scene.bbox().bounding_sphere()
        self._sphere = around.center, max(around.radius, 1e-4) * (1 + 1e-4)

    def bbox(self) -> Any:
        return mi.ScalarBoundingBox3f()

    def to_string(self) -> str:
        return f"CumulusEnvmap[{self._warp.width} x {self._warp.height}]"

    def _seen(self, d: Any) -> Tuple[Any, Any]:
        """The uv of a direction, rounded as Mitsuba's own lookup rounds it, and the density there per steradian.

        All that is asked of a direction goes through this, so that a sample's density is what `pdf_direction` says of it.
        """
        v = self._from_world @ d
        across = dr.atan2(v.x, -v.z) * dr.inv_two_pi
        uv = mi.Point2f(across - dr.floor(across), dr.safe_acos(v.y) * dr.inv_pi)
        sine = dr.sqrt(dr.maximum(v.x * v.x + v.z * v.z, 1e-14))
        return uv, mi.Float(self._warp.density(uv) / (2.0 * dr.square(dr.pi) * mi.Float64(sine)))

    def _direction(self, uv: Any) -> Any:
        theta, phi = mi.Float64(uv.y) * dr.pi, mi.Float64(uv.x) * (2.0 * dr.pi)
        sine = dr.sin(theta)
        return mi.Vector3f(mi.Float(dr.sin(phi) * sine), mi.Float(dr.cos(theta)), mi.Float(-dr.cos(phi) * sine))

    def eval(self, si: Any, active: Any = True) -> Any:
        if self._lookup is not None:
            return self._lookup.at(self._seen(-si.wi)[0], active)
        return self._envmap.eval(si, active)

    def eval_direction(self, it: Any, ds: Any, active: Any = True) -> Any:
        if self._lookup is not None:
            return self._lookup.at(ds.uv, active)
        return self._envmap.eval_direction(it, ds, active)

    def sample_wavelengths(self, si: Any, sample: Any, active: Any = True) -> Any:
        wavelengths, weight = self._envmap.sample_wavelengths(si, sample, active)
        return wavelengths, weight if self._lookup is None else self._lookup.at(si.uv, active)

    def sample_direction(self, it: Any, sample: Any, active: Any = True) -> Any:
        direction = self._to_world @ self._direction(self._warp.sample(sample))
        uv, pdf = self._seen(direction)
        ds: Any = mi.DirectionSample3f()  # dr.zeros() of it fails in scalar variants
        ds.p = it.p + direction * _FAR
        ds.n = -direction
        ds.uv = uv
        ds.time = it.time
        ds.pdf = dr.select(active, pdf, 0.0)
        ds.delta = False
        ds.emitter = mi.EmitterPtr(self) if dr.is_jit_v(mi.Float) else self
        ds.d = direction
        ds.dist = mi.Float(_FAR)
        lit = active & (ds.pdf > 0.0)
        radiance = self.eval_direction(it, ds, lit) / dr.maximum(ds.pdf, 1e-30)
        return ds, dr.select(lit, radiance, 0.0)

    def pdf_direction(self, it: Any, ds: Any, active: Any = True) -> Any:
        return dr.select(active, self._seen(ds.d)[1], 0.0)

    def sample_position(self, time: Any, sample: Any, active: Any = True) -> Any:
        return dr.zeros(mi.PositionSample3f), mi.Float(0.0)  # infinitely far away; asked all the same by recorded calls

    def sample_ray(self, time: Any, wavelength_sample: Any, sample2: Any, sample3: Any, active: Any = True) -> Any:
        if self._sphere is None:
            raise RuntimeError("cumulus_envmap: rays of light have no place to begin; call "
                               "scene.environment().set_scene(scene) before light is traced from the map")
        center, radius = self._sphere
        disk = mi.warp.square_to_uniform_disk_concentric(sample2)
        local = self._direction(self._warp.sample(sample3))
        direction = self._to_world @ -local
        uv, pdf = self._seen(-direction)
        offset = self._to_world @ mi.Frame3f(local).to_world(mi.Vector3f(disk.x, disk.y, 0.0))
        si = dr.zeros(mi.SurfaceInteraction3f)
        si.time = time
        si.p = center + (offset - direction) * radius
        si.uv = uv
        wavelengths, weight = self.sample_wavelengths(si, wavelength_sample, active)
        weight = weight * (dr.pi * radius * radius / dr.maximum(pdf, 1e-30))
        return mi.Ray3f(si.p, direction, time, wavelengths), weight


def _columns(data: NDArray) -> NDArray:
    """A map without the columns that Mitsuba repeats beyond its seam: one on each side, or, before 3.9, at the end."""
    if data.shape[1] > 3 and np.array_equal(data[:, 0], data[:, -2]) and np.array_equal(data[:, -1], data[:, 1]):
        return data[:, 1:-1]
    return data[:, :-1]


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def register(client: Optional["Client"] = None) -> None:
    """Makes `cumulus_envmap` known to Mitsuba's current variant; `client` builds the tables of maps without one."""
    global _client
    _client = client
    mi.register_emitter("cumulus_envmap", CumulusEnvmap)
