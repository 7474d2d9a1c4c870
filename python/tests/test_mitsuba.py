"""cumulus_envmap beside Mitsuba's own envmap: densities, lookups, total light, images."""

import cumulus
import numpy as np
import pytest

mi = pytest.importorskip("mitsuba")
mi.set_variant("scalar_rgb")
dr = pytest.importorskip("drjit")
import cumulus.mitsuba  # noqa: E402

RANDOM = np.random.default_rng(12)


def maps():
    noise = (np.random.default_rng(13).random((16, 32, 3)) ** 4).astype(np.float32)
    sun = np.full((33, 64, 3), 0.1, np.float32)
    sun[8, 0] = 1e4  # on the seam
    edges = np.zeros((8, 13, 3), np.float32)
    edges[[0, 3, 7], [5, 12, 0]] = 1  # at the poles and beside the seam
    return {"noise": noise, "sun": sun, "edges": edges, "even": np.full((5, 4, 3), 0.7, np.float32)}


@pytest.fixture(scope="module", autouse=True)
def registered(client):
    cumulus.mitsuba.register(client)


@pytest.fixture(scope="module", params=list(maps()))
def both(request):
    bitmap = mi.Bitmap(maps()[request.param])
    return (mi.load_dict({"type": "cumulus_envmap", "bitmap": bitmap}), mi.load_dict({"type": "envmap", "bitmap": bitmap}))


def draw(emitter, points):
    it = dr.zeros(mi.SurfaceInteraction3f)
    return it, [emitter.sample_direction(it, mi.Point2f(*point)) for point in points]


def test_densities_are_mitsubas(both):
    ours, theirs = both
    points = RANDOM.random((400, 2))
    for emitter, other in ((ours, theirs), (theirs, ours)):
        it, drawn = draw(emitter, points)
        for sample, _ in drawn:
            if sample.pdf > 1e-4:
                assert abs(other.pdf_direction(it, sample) / sample.pdf - 1) < 1e-3
                assert emitter is theirs or np.float32(ours.pdf_direction(it, sample)) == sample.pdf


def test_sampling_and_lookup_agree(both):
    ours, theirs = both
    it, drawn = draw(ours, RANDOM.random((200, 2)))
    si = dr.zeros(mi.SurfaceInteraction3f)
    for sample, weight in drawn:
        si.wi = -sample.d
        radiance = np.array(theirs.eval(si))
        assert np.allclose(np.array(weight) * sample.pdf, radiance, rtol=1e-3, atol=1e-5)
        assert np.array_equal(np.array(ours.eval(si)), radiance)


def test_total_light_has_no_more_variance(both):
    ours, theirs = both
    points = (np.stack(np.meshgrid(np.arange(40), np.arange(40)), -1).reshape(-1, 2) + RANDOM.random((1600, 2))) / 40
    lights = []
    for emitter in both:
        lights.append(np.array([np.mean(np.array(weight)) for _, weight in draw(emitter, points)[1]]))
    assert abs(lights[0].mean() / lights[1].mean() - 1) < 0.02
    assert lights[0].std() <= lights[1].std() * 1.05 + 1e-3 * lights[1].mean()


def render(light):
    scene = mi.load_dict({
        "type": "scene", "integrator": {"type": "direct"}, "light": light,
        "ball": {"type": "sphere", "bsdf": {"type": "diffuse"}},
        "sensor": {"type": "perspective", "to_world": mi.ScalarTransform4f().look_at([0, 1, 4], [0, 0, 0], [0, 1, 0]),
                   "film": {"type": "hdrfilm", "width": 8, "height": 8, "rfilter": {"type": "box"}},
                   "sampler": {"type": "multijitter", "sample_count": 196}}})
    return np.array(mi.render(scene, seed=1))


@pytest.mark.parametrize("name", ["noise", "sun"])
def test_images_are_the_same(name):
    turned = mi.ScalarTransform4f().rotate([0.6, 0, 0.8], 40)
    options = {"bitmap": mi.Bitmap(maps()[name]), "to_world": turned, "scale": 2.0}
    ours, theirs = (render({"type": kind, **options}) for kind in ("cumulus_envmap", "envmap"))
    assert abs(ours.mean() / theirs.mean() - 1) < 0.02
    assert np.abs(ours - theirs).mean() < 0.05 * theirs.mean()


def test_compensation_is_mitsubas():
    options = {"bitmap": mi.Bitmap(maps()["noise"]), "mis_compensation": True}
    ours, theirs = (mi.load_dict({"type": kind, **options}) for kind in ("cumulus_envmap", "envmap"))
    it, drawn = draw(ours, RANDOM.random((200, 2)))
    for sample, _ in drawn:
        if sample.pdf > 1e-3:
            assert abs(theirs.pdf_direction(it, sample) / sample.pdf - 1) < 1e-3


def test_tables_from_files_and_new_frames(client, tmp_path):
    noise = maps()["noise"]
    cumulus.mitsuba.build_table(client, noise).save(tmp_path / "noise.cst")
    bitmap = mi.Bitmap(noise)
    filed = mi.load_dict({"type": "cumulus_envmap", "bitmap": bitmap, "table": str(tmp_path / "noise.cst")})
    built = mi.load_dict({"type": "cumulus_envmap", "bitmap": bitmap})
    it, drawn = draw(built, RANDOM.random((20, 2)))
    assert all(filed.pdf_direction(it, sample) == built.pdf_direction(it, sample) for sample, _ in drawn)

    parameters = mi.traverse(built)
    frame = np.array(parameters["envmap.data"]).copy()
    frame[2:5] *= 20
    parameters["envmap.data"] = frame
    parameters.update()
    bright = [np.mean([0.1 < sample.uv.y < 0.3 for sample, _ in draw(each, RANDOM.random((100, 2)))[1]])
              for each in (filed, built)]
    assert bright[0] < 0.4 and bright[1] > 0.5
    _, drawn = draw(built, RANDOM.random((100, 2)))
    assert all(abs(built.pdf_direction(it, sample) / sample.pdf - 1) < 1e-3 for sample, _ in drawn if sample.pdf > 1e-4)


def test_what_is_far_away_hides_the_light(both):
    box = {"type": "sphere", "radius": 100, "flip_normals": True, "bsdf": {"type": "diffuse", "reflectance": 0.0}}
    for light in both:
        scene = mi.load_dict({"type": "scene", "light": light, "around": box})
        it = dr.zeros(mi.SurfaceInteraction3f)
        _, weight = scene.sample_emitter_direction(it, mi.Point2f(0.4, 0.6), True)
        assert np.all(np.array(weight) == 0)


def test_rays_of_light_bring_as_much(both):
    ours, _ = both
    points = RANDOM.random((4000, 4))
    it, drawn = draw(ours, points[:400, 2:])
    light = np.mean([np.mean(np.array(weight)) for _, weight in drawn])
    scene = mi.load_dict({"type": "scene", "light": ours, "ball": {"type": "sphere", "radius": 3},
                          "other": {"type": "sphere", "radius": 1, "center": [5, 0, 0]}})
    ball = mi.load_dict({"type": "scene", "ball": {"type": "sphere", "radius": 3}})
    ours.set_scene(scene)
    rays = [ours.sample_ray(0.0, 0.5, mi.Point2f(*each[:2]), mi.Point2f(*each[2:])) for each in points]
    brought = np.mean([np.mean(np.array(weight)) * ball.ray_test(ray) for ray, weight in rays])
    assert abs(brought / (np.pi * 3 ** 2 * light) - 1) < 0.1


def test_rays_need_the_scene():
    light = mi.load_dict({"type": "cumulus_envmap", "bitmap": mi.Bitmap(maps()["even"])})
    with pytest.raises(RuntimeError, match="environment.*set_scene"):
        light.sample_ray(0.0, 0.5, mi.Point2f(0.1, 0.2), mi.Point2f(0.3, 0.4))


def test_exports_load_in_mitsubas_class(client, command_line, tmp_path):
    weights = np.random.default_rng(14).random((16, 32), dtype=np.float32) ** 4
    table = client.sampling_table(weights, projection="plane")
    table.save(tmp_path / "map.cst")
    command_line("sampling-table", tmp_path / "map.cst", "--export", "mitsuba", "-o", tmp_path / "map.npz")
    loaded = mi.DiscreteDistribution2D(np.load(tmp_path / "map.npz")["pdf"])
    for y, x in ((0, 0), (7, 30), (15, 31)):
        pdf = table.local().pdf(np.array([[(x + 0.5) / 32, (y + 0.5) / 16]]))[0]
        assert abs(loaded.pdf(mi.Point2u(x, y)) * weights.size / pdf - 1) < 1e-4
    texel, probability, _ = loaded.sample(mi.Point2f(0.3, 0.8))
    assert abs(probability / loaded.pdf(texel) - 1) < 1e-4


def directions(count):
    return [mi.Vector3f(*(each / np.linalg.norm(each))) for each in RANDOM.normal(size=(count, 3))]


@pytest.mark.parametrize("name", list(maps()))
def test_cudas_lookup_is_mitsubas_without_its_rounding(name, monkeypatch):
    """The lookup that stands in for the texture units', in this variant, whose own is exact."""
    monkeypatch.setattr(cumulus.mitsuba.ExactLookup, "is_needed", lambda: True)
    bitmap = mi.Bitmap(maps()[name])
    ours, theirs = (mi.load_dict({"type": kind, "bitmap": bitmap, "scale": 2.5}) for kind in ("cumulus_envmap", "envmap"))
    brightest = maps()[name].max()
    it, drawn = draw(ours, RANDOM.random((100, 2)))
    for si in (dr.zeros(mi.SurfaceInteraction3f) for _ in range(2)):
        for d in (*directions(200), mi.Vector3f(0, 1, 0), mi.Vector3f(0, -1, 0), mi.Vector3f(0, 0, 1), mi.Vector3f(-1e-7, 0, 1)):
            si.wi = -d
            assert np.allclose(np.array(ours.eval(si)), np.array(theirs.eval(si)), rtol=1e-3, atol=1e-4 * brightest)
        for sample, weight in drawn:
            si.uv, si.wi = sample.uv, -sample.d
            assert np.array_equal(np.array(ours.eval(si)), np.array(ours.eval_direction(it, sample)))
            assert np.allclose(np.array(weight) * sample.pdf, np.array(ours.eval(si)), rtol=1e-5)
            light, wanted = (np.array(each.sample_wavelengths(si, 0.5)[1]) for each in (ours, theirs))
            assert np.allclose(light, wanted, rtol=1e-3, atol=1e-4 * brightest)


def test_cudas_lookup_follows_new_frames(monkeypatch):
    monkeypatch.setattr(cumulus.mitsuba.ExactLookup, "is_needed", lambda: True)
    light = mi.load_dict({"type": "cumulus_envmap", "bitmap": mi.Bitmap(maps()["even"])})
    parameters = mi.traverse(light)
    parameters["envmap.data"] = 2 * np.array(parameters["envmap.data"])
    parameters.update()
    si = dr.zeros(mi.SurfaceInteraction3f)
    si.wi = mi.Vector3f(0, 0, 1)
    assert np.allclose(np.array(light.eval(si)), 1.4, rtol=1e-5)
