"""Pictures of tables, trees and runs: `.plot()`, and what notebooks show. matplotlib is imported when one is drawn."""

from __future__ import annotations

import base64
import html as markup
import io
from typing import TYPE_CHECKING, Any, Mapping

import numpy as np

if TYPE_CHECKING:
    from .kd_tree import KdTree
    from .run_length import RunLengths
    from .sampling_table import SamplingTable

MAX_PIXELS = 1024  # a side, of what is drawn
MAX_POINTS = 20000
MAX_LEAVES = 4096


def _axes(axes: Any, width: float, height: float) -> Any:
    if axes is not None:
        return axes
    try:
        import matplotlib.pyplot as plt
    except ImportError as problem:
        raise ImportError("plots need matplotlib: pip install matplotlib") from problem
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def plot_table(table: "SamplingTable", axes: Any, samples: int) -> Any:
    """The logarithm of the density, with samples on it."""
    here = table.local()
    height, width = here.header.height, here.header.width
    v, u = ((np.arange(side) + 0.5) / side for side in (min(height, MAX_PIXELS), min(width, MAX_PIXELS)))
    grid = np.stack(np.meshgrid(u, v), axis=-1).reshape(-1, 2).astype(np.float32)
    density = here.pdf(grid).reshape(len(v), len(u)).astype(np.float64)
    axes = _axes(axes, 8, 8 * min(max(height / width, 0.25), 1.0))
    lit = density[density > 0]
    low, high = np.percentile(lit, (2, 99.8)) if lit.size else (1.0, 1.0)
    axes.imshow(np.log(np.clip(density, low, high)), cmap="gray", extent=(0, 1, 1, 0), interpolation="nearest",
                aspect=height / width if here.header.projection_name == "lat-long" else "auto")
    drawn = here.sample(samples).position
    axes.scatter(drawn[:, 0], drawn[:, 1], s=6, c="#ff7f0e", linewidths=0)
    axes.set(xlabel="u", ylabel="v", xlim=(0, 1), ylim=(1, 0),
             title=f"{here.header.projection_name} {width} x {height}, {samples} samples")
    return axes


def plot_tree(tree: "KdTree", axes: Any) -> Any:
    """Points, and the boxes of leaves, along the first two axes."""
    from matplotlib.collections import LineCollection

    points, nodes, bounds = tree.points, tree.nodes, tree.node_bounds
    if points.ndim == 3:
        points, nodes, bounds = points[0], nodes[0], bounds[0]
    axes = _axes(axes, 6, 6)
    shown = points[:: -(-len(points) // MAX_POINTS)]
    axes.scatter(shown[:, 0], shown[:, 1], s=2, c="#1f77b4", linewidths=0)
    leaves = np.flatnonzero(nodes["is_leaf"])
    low, high = bounds[0, leaves[:: -(-len(leaves) // MAX_LEAVES)]], bounds[1, leaves[:: -(-len(leaves) // MAX_LEAVES)]]
    corners = np.stack([np.stack([x[:, 0], y[:, 1]], axis=-1)
                        for x, y in ((low, low), (high, low), (high, high), (low, high), (low, low))], axis=1)
    axes.add_collection(LineCollection(list(corners), colors="#444444", linewidths=0.6))
    axes.set(xlabel="axis 0", ylabel="axis 1", title=f"{len(points)} points in {len(leaves)} leaves", aspect="equal")
    axes.autoscale_view()
    return axes


def plot_runs(runs: "RunLengths", axes: Any) -> Any:
    """The array, and of a mask the box around its ones."""
    image = runs.numpy()
    while image.ndim > (3 if runs.pixels else 2):
        image = image[0]
    if image.ndim == 1:
        image = image[None]
    step = -(-max(image.shape[:2]) // MAX_PIXELS)
    axes = _axes(axes, 6, 6 * min(max(image.shape[0] / image.shape[1], 0.25), 1.5))
    axes.imshow(image[::step, ::step], cmap="gray", interpolation="nearest",
                extent=(0, image.shape[1], image.shape[0], 0))
    title = f"{list(runs.shape)}, {len(runs)} runs"
    if runs.dtype == np.uint8 and len(runs.shape) == 2 and image.size and int(runs.symbols.max()) <= 1:
        from matplotlib.patches import Rectangle

        x, y, width, height = runs.box
        axes.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor="#ff7f0e", linewidth=1.5))
        title += f", area {runs.area}"
    axes.set(title=title)
    return axes


def html(value: Any, title: str, facts: Mapping[str, Any]) -> str:
    """A table of facts, and the plot where matplotlib is installed."""
    rows = "".join(f"<tr><th style='text-align:left'>{markup.escape(str(name))}</th>"
                   f"<td style='text-align:left'>{markup.escape(str(fact))}</td></tr>" for name, fact in facts.items())
    picture = ""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        pass
    else:
        figure = Figure(figsize=(5, 4), layout="constrained")
        FigureCanvasAgg(figure)
        value.plot(figure.add_subplot())
        data = io.BytesIO()
        figure.savefig(data, format="png", dpi=90)
        picture = f"<img alt='{markup.escape(title)}' src='data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}'>"
    return f"<div><b>{markup.escape(title)}</b><table>{rows}</table>{picture}</div>"
