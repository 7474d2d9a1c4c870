"""examples/photon_map.py, small: that the irradiance of its map adds up to the photons' power, and where the caustic is."""

import pathlib
import sys

import numpy as np
import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
import photon_map  # noqa: E402

SIDE = 40


@pytest.fixture(scope="module")
def photons():
    return photon_map.shoot(50_000, np.random.default_rng(1))


@pytest.fixture(scope="module")
def kept(client, photons):
    return photon_map.PhotonMap(client, photons)


def places_of(wall):
    """In the middles of the cells of a grid."""
    axis, plane = photon_map.WALLS[wall]
    u, v = (np.indices((SIDE, SIDE)).reshape(2, -1) + 0.5) / SIDE
    places = np.empty((SIDE * SIDE, 3))
    places[:, axis], places[:, (axis + 1) % 3], places[:, (axis + 2) % 3] = plane, u, v
    return places, np.full(len(places), wall)


@pytest.mark.parametrize("wall", range(len(photon_map.WALLS)))
def test_no_power_is_lost_or_made(photons, kept, wall):
    arrived = photons.powers[photons.walls == wall].sum(axis=0)
    estimated = kept.irradiance(*places_of(wall)).mean(axis=0)  # over an area of one
    assert np.allclose(estimated, arrived, rtol=0.05)  # the caustic, whose edges nearest photons blur, has 4 % more


def test_the_glass_sphere_throws_a_caustic(kept):
    places, walls = places_of(0)
    irradiance = kept.irradiance(places, walls).mean(axis=1)
    brightest = places[irradiance.argmax()]
    (x, _, z), radius = photon_map.SPHERES[photon_map.GLASS]
    assert irradiance.max() > 8 * np.median(irradiance)
    assert np.hypot(brightest[0] - x, brightest[2] - z) < radius


def test_a_small_picture(kept):
    radiance = photon_map.render(kept, 32, 1, np.random.default_rng(2))
    assert radiance.shape == (32, 32, 3) and np.isfinite(radiance).all() and (radiance >= 0).all()
    left, right = radiance[8:24, :3].mean(axis=(0, 1)), radiance[8:24, -3:].mean(axis=(0, 1))
    assert left[0] > 3 * left[1] and right[1] > 2 * right[0]  # red on the left, green on the right
    assert radiance.max() == photon_map.RADIANCE
