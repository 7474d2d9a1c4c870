#!/usr/bin/env python3
"""cumulus_envmap beside Mitsuba's own envmap, in a variant of Dr.Jit's arrays: what docs/mitsuba.md says of each map.

    compare_envmaps.py VARIANT ADDRESS [--picture FILE | --no-pictures] [--samples N] MAP...

Prints a line of JSON for each map (an image file that Mitsuba reads). ADDRESS is a server's. --no-pictures compares samples
alone, for which a GPU needs no OptiX. A program of its own, since a process that has asked for one variant does not always bear another.
"""

import argparse
import json

import cumulus
import mitsuba as mi
import numpy as np

SPHERE = {"type": "sphere", "bsdf": {"type": "diffuse"}}


def compare_samples(ours, theirs, count):
    """Directions that each draws, both densities of them, and the light of a sample: its mean and deviation."""
    import drjit as dr

    points = np.random.default_rng(5).random((2, count), dtype=np.float32)
    interaction = dr.zeros(mi.SurfaceInteraction3f, count)
    row = {}
    for name, emitter in (("ours", ours), ("theirs", theirs)):
        drawn, weight = emitter.sample_direction(interaction, mi.Point2f(points[0], points[1]))
        pdf, our_pdf, their_pdf = (np.array(each, np.float64) for each in (
            drawn.pdf, ours.pdf_direction(interaction, drawn), theirs.pdf_direction(interaction, drawn)))
        seen = pdf > 1e-4
        ratios = our_pdf[seen] / their_pdf[seen]
        own = (our_pdf if emitter is ours else their_pdf)[seen] / pdf[seen]
        light = np.array(mi.luminance(weight) if mi.is_rgb else weight[0], np.float64)
        row[name] = {"pdf": [ratios.min(), ratios.max()], "beyond": (np.abs(ratios - 1) > 1e-3).mean(),
                     "own": [own.min(), own.max()], "light": light.mean(), "deviation": light.std()}
    return row


def scene(kind, path, size):
    turned = mi.ScalarTransform4f().rotate([0, 1, 0], 40)
    camera = mi.ScalarTransform4f().look_at([0, 0.6, 5.6], [0, 0, 0], [0, 1, 0])
    return mi.load_dict({
        "type": "scene", "integrator": {"type": "path", "max_depth": 4}, "light": {"type": kind, "filename": path, "to_world": turned},
        "rough": {**SPHERE, "radius": 0.8, "center": [-0.9, 0, 0]},
        "metal": {"type": "sphere", "radius": 0.8, "center": [0.9, 0, 0],
                  "bsdf": {"type": "roughconductor", "material": "Al", "alpha": 0.15}},
        "sensor": {"type": "perspective", "to_world": camera, "fov": 40,
                   "film": {"type": "hdrfilm", "width": size, "height": size // 2, "rfilter": {"type": "box"}},
                   "sampler": {"type": "independent", "sample_count": 64}}})


def compare_pictures(path):
    """Means of the picture of two spheres, its noise against another picture of 64 samples, and, on the diffuse sphere, light
    that is traced from the map (`sample_ray`) over light that is traced to it."""
    ours, theirs = (scene(kind, path, 256) for kind in ("cumulus_envmap", "envmap"))
    pictures = [[np.array(mi.render(each, seed=seed, spp=64)) for seed in (1, 2)] for each in (ours, theirs)]
    noise = [float(np.sqrt(((a - b) ** 2).mean() / 2)) for a, b in pictures]
    ours.environment().set_scene(ours)
    traced = np.array(mi.render(ours, integrator=mi.load_dict({"type": "ptracer", "max_depth": 4}), spp=512))
    part = np.s_[48:80, 60:92]
    mean = [float(np.mean(each)) for each in pictures]
    rays = float(traced[part].mean()) / float(np.mean([each[part] for each in pictures[1]]))
    return pictures, {"mean": mean[0] / mean[1], "noise": noise[0] / noise[1], "rays": rays}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("variant")
    parser.add_argument("address")
    parser.add_argument("maps", nargs="+")
    parser.add_argument("--picture")
    parser.add_argument("--no-pictures", action="store_true")
    parser.add_argument("--samples", type=int, default=400000)
    options = parser.parse_args()
    mi.set_variant(options.variant)
    mi.set_log_level(mi.LogLevel.Error)
    import cumulus.mitsuba

    rows = []
    with cumulus.connect(options.address) as client:
        cumulus.mitsuba.register(client)
        for path in options.maps:
            emitters = (mi.load_dict({"type": kind, "filename": path}) for kind in ("cumulus_envmap", "envmap"))
            row = {"map": path, **compare_samples(*emitters, options.samples)}
            if options.no_pictures:
                print(json.dumps(row), flush=True)
                continue
            pictures, numbers = compare_pictures(path)
            print(json.dumps({**row, **numbers}), flush=True)
            rows.append(np.concatenate([pictures[0][0], pictures[1][0]], axis=1))
    if options.picture:
        mi.util.write_bitmap(options.picture, mi.TensorXf(np.concatenate(rows)), write_async=False)


if __name__ == "__main__":
    main()
