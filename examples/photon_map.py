#!/usr/bin/env python3
"""A Cornell box with a glass and a mirror sphere, by photon mapping (H. W. Jensen, "Global illumination using photon
maps", 1996): photons are shot here, and a Cumulus server keeps them in a KD-tree and sums the powers of those that are
nearest to each place that the camera sees. Light straight from the lamp comes of shadow rays; what has been reflected or
refracted on its way, the caustic among it, of the photons.

    PYTHONPATH=python/src examples/photon_map.py [--server HOST:PORT] [--photons 1000000] [-o photon_map.png]

Lists of the nearest would be a kilobyte for each place; the sums are sixteen bytes.
"""

import argparse
import time
from typing import NamedTuple

import cumulus
import numpy as np

# The room is the unit cube, y up, open at z = 0. Walls are the axis and the coordinate of their plane.
WALLS = ((1, 0.0), (1, 1.0), (2, 1.0), (0, 0.0), (0, 1.0))
ALBEDOS = np.array([[0.75] * 3, [0.75] * 3, [0.75] * 3, [0.65, 0.08, 0.06], [0.10, 0.45, 0.12]])
CEILING, OPENING, NOWHERE = 1, 5, 8
GLASS, MIRROR = 6, 7
SPHERES = {GLASS: ((0.70, 0.22, 0.36), 0.19), MIRROR: ((0.29, 0.20, 0.66), 0.20)}
REFRACTIVE_INDEX = 1.5
LAMP = (0.36, 0.64)  # a square of the ceiling, along x and z
RADIANCE = 18.0
LAMP_AREA = (LAMP[1] - LAMP[0]) ** 2

MOST_BOUNCES = 16
NEAREST = 100
RADIUS = 0.12  # photons farther away are left out
APART = 4.0  # the walls' distance along the fourth coordinate: photons of other walls are never near


class Photons(NamedTuple):
    positions: np.ndarray  # [photons, 3]
    walls: np.ndarray  # [photons]
    powers: np.ndarray  # [photons, 3]


def dot(a, b):
    return np.einsum("ij,ij->i", a, b)


def intersect(origins, directions):
    """How far the nearest surface is, and which."""
    distance = np.full(len(origins), np.inf)
    surface = np.full(len(origins), NOWHERE)

    def offer(at, number):
        nearer = (at > 1e-6) & (at < distance)
        distance[nearer] = at[nearer]
        surface[nearer] = number

    with np.errstate(divide="ignore", invalid="ignore"):
        for number, (axis, plane) in enumerate((*WALLS, (2, 0.0))):
            offer((plane - origins[:, axis]) / directions[:, axis], number)
        for number, (center, radius) in SPHERES.items():
            to_center = np.array(center) - origins
            middle = dot(to_center, directions)
            half = np.sqrt(middle**2 - dot(to_center, to_center) + radius**2)  # NaN: the ray passes by
            offer(np.where(middle - half > 1e-6, middle - half, middle + half), number)
    return distance, surface


def reflect_or_refract(positions, directions, surfaces, random):
    """New directions at spheres; glass does either, as often as Fresnel's equations say."""
    centers = np.array([SPHERES[GLASS][0], SPHERES[MIRROR][0]])[(surfaces == MIRROR).astype(int)]
    normals = positions - centers
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    cosine = -dot(directions, normals)
    normals[cosine < 0] *= -1
    ratio = np.where(cosine < 0, REFRACTIVE_INDEX, 1 / REFRACTIVE_INDEX)
    cosine = np.abs(cosine)
    inner = np.sqrt(np.maximum(1 - ratio**2 * (1 - cosine**2), 0))  # 0: total reflection
    parallel = (cosine - ratio * inner) / (cosine + ratio * inner)
    across = (ratio * cosine - inner) / (ratio * cosine + inner)
    reflected = (surfaces == MIRROR) | (random.random(len(cosine)) < (parallel**2 + across**2) / 2)
    along = np.where(reflected, 2 * cosine, ratio * cosine - inner)[:, None] * normals
    return np.where(reflected[:, None], directions, ratio[:, None] * directions) + along


def diffuse_directions(walls, random):
    """Into the room, by the cosine to the wall's normal."""
    height = np.sqrt(random.random(len(walls)))
    angle = 2 * np.pi * random.random(len(walls))
    width = np.sqrt(1 - height**2)
    directions = np.empty((len(walls), 3))
    for number, (axis, plane) in enumerate(WALLS):
        here = walls == number
        directions[here, axis] = height[here] * (1 - 2 * plane)
        directions[here, (axis + 1) % 3] = width[here] * np.cos(angle[here])
        directions[here, (axis + 2) % 3] = width[here] * np.sin(angle[here])
    return directions


def points_of_the_lamp(count, random):
    across = LAMP[0] + (LAMP[1] - LAMP[0]) * random.random((count, 2))
    return np.column_stack((across[:, 0], np.full(count, 1.0), across[:, 1]))


def shoot(count, random):
    """`count` photons, where they land on walls after their first bounce."""
    positions = points_of_the_lamp(count, random)
    directions = diffuse_directions(np.full(count, CEILING), random)
    powers = np.full((count, 3), RADIANCE * np.pi * LAMP_AREA / count)
    landed = []
    for bounce in range(MOST_BOUNCES):
        distance, surfaces = intersect(positions, directions)
        positions = positions + distance[:, None] * directions
        on_wall = surfaces < OPENING
        if bounce > 0:
            landed.append(Photons(positions[on_wall], surfaces[on_wall], powers[on_wall]))
        albedos = ALBEDOS[np.minimum(surfaces, OPENING - 1)]
        survives = random.random(len(powers)) < albedos.max(axis=1)  # Russian roulette
        powers = np.where(on_wall[:, None], powers * albedos / albedos.max(axis=1, keepdims=True), powers)
        at_sphere = (surfaces == GLASS) | (surfaces == MIRROR)
        on_wall &= survives
        directions[on_wall] = diffuse_directions(surfaces[on_wall], random)
        directions[at_sphere] = reflect_or_refract(positions[at_sphere], directions[at_sphere], surfaces[at_sphere], random)
        left = on_wall | at_sphere
        positions, directions, powers = positions[left], directions[left], powers[left]
    return Photons(*(np.concatenate(part) for part in zip(*landed)))


def disc_on_wall(positions, walls, squared_radius):
    """The area of discs around places, as far as they lie on the wall, which ends at the room's edges."""
    radius = np.sqrt(squared_radius)
    axes = np.array([axis for axis, _ in WALLS])[walls]
    rows = np.arange(len(walls))
    u, v = positions[rows, (axes + 1) % 3], positions[rows, (axes + 2) % 3]
    edges = [np.clip(each / radius, 0, 1) for each in (u, 1 - u, v, 1 - v)]  # in radii

    def beyond(d):  # one edge
        return np.arccos(d) - d * np.sqrt(1 - d**2)

    def beyond_both(a, b):  # two that meet
        corner = (np.arccos(a) + np.arccos(b) - np.pi / 2 - a * np.sqrt(1 - a**2) - b * np.sqrt(1 - b**2)) / 2 + a * b
        return np.where(a**2 + b**2 < 1, corner, 0)

    area = np.pi - sum(map(beyond, edges)) + sum(beyond_both(a, b) for a in edges[:2] for b in edges[2:])
    return area * squared_radius


class PhotonMap:
    """Photons on a server."""

    def __init__(self, client, photons):
        self._tree = client.kd_tree(self._points(photons.positions, photons.walls), leaf_size=20)
        self._powers = client.upload(photons.powers.astype(np.float32))

    @staticmethod
    def _points(positions, walls):
        return np.column_stack((positions, APART * walls)).astype(np.float32)

    def irradiance(self, positions, walls):
        """Of places on walls, [places, 3]: the power of the nearest photons over the area that they lie on."""
        sums, squared = self._tree.sums(self._points(positions, walls), self._powers, NEAREST, radius=RADIUS, squared=True)
        enough = np.isfinite(squared)
        area = disc_on_wall(positions, walls, np.where(enough, squared, RADIUS**2).astype(float))
        return sums * (np.where(enough, 1 - 1 / NEAREST, 1) / area)[:, None]  # the last lies on the rim


def direct_irradiance(positions, walls, random):
    """Straight from the lamp, by one shadow ray for each place."""
    ray = points_of_the_lamp(len(positions), random) - positions
    squared = dot(ray, ray)
    ray /= np.sqrt(squared)[:, None]
    axes = np.array([axis for axis, _ in WALLS])[walls]
    at_wall = np.abs(ray[np.arange(len(ray)), axes])
    distance, _ = intersect(positions, ray)
    seen = (distance > np.sqrt(squared) - 1e-4) & (walls != CEILING)
    return np.where(seen, RADIANCE * LAMP_AREA * at_wall * ray[:, 1] / squared, 0)[:, None]


def camera_rays(size, random):
    """Through each pixel's place in the opening, which is the picture."""
    y, x = np.divmod(np.arange(size * size), size)
    across = (np.column_stack((x, size - 1 - y)) + random.random((size * size, 2))) / size
    through = np.column_stack((across, np.full(size * size, 1e-5)))
    directions = through - np.array([0.5, 0.5, -1.4])
    return through, directions / np.linalg.norm(directions, axis=1, keepdims=True)


def render_pass(photon_map, size, random):
    """One ray for each pixel: radiance, [size * size, 3]."""
    positions, directions = camera_rays(size, random)
    pixels = np.arange(size * size)
    radiance = np.zeros((size * size, 3))
    for _ in range(MOST_BOUNCES):
        distance, surfaces = intersect(positions, directions)
        positions = positions + distance[:, None] * directions
        on_wall = surfaces < OPENING
        places, walls = positions[on_wall], surfaces[on_wall]
        at_lamp = (walls == CEILING) & ((places[:, [0, 2]] > LAMP[0]) & (places[:, [0, 2]] < LAMP[1])).all(axis=1)
        light = photon_map.irradiance(places, walls) + direct_irradiance(places, walls, random)
        radiance[pixels[on_wall]] = np.where(at_lamp[:, None], RADIANCE, ALBEDOS[walls] / np.pi * light)
        left = (surfaces == GLASS) | (surfaces == MIRROR)
        if not left.any():
            break
        positions, pixels = positions[left], pixels[left]
        directions = reflect_or_refract(positions, directions[left], surfaces[left], random)
    return radiance


def render(photon_map, size, passes, random):
    """Radiance, [size, size, 3]."""
    total = sum(render_pass(photon_map, size, random) for _ in range(passes))
    return (total / passes).reshape(size, size, 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", help="HOST:PORT; without, as cumulus.connect() finds one")
    parser.add_argument("--photons", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=400, help="pixels along a side")
    parser.add_argument("--passes", type=int, default=16, help="rays for each pixel")
    parser.add_argument("-o", "--output", default="photon_map.png")
    options = parser.parse_args()
    from matplotlib.image import imsave

    random = np.random.default_rng(1)
    with cumulus.connect(options.server) as client:
        begin = time.perf_counter()
        photons = shoot(options.photons, random)
        shot = time.perf_counter()
        photon_map = PhotonMap(client, photons)
        built = time.perf_counter()
        radiance = render(photon_map, options.size, options.passes, random)
        print(f"{len(photons.walls)} photons landed, in {shot - begin:.1f} s; tree {built - shot:.1f} s; "
              f"picture {time.perf_counter() - built:.1f} s")
    imsave(options.output, np.clip(radiance, 0, 1) ** (1 / 2.2))


if __name__ == "__main__":
    main()
