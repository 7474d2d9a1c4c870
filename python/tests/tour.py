"""The calls that most people make first, and whether what they give is right: run by test_docs.py, and by scripts/wheel where
nothing else is installed. It needs numpy and cumulus alone, and writes sky.cst where it runs."""

import numpy as np

image = np.random.default_rng(1).random((96, 128, 3), dtype=np.float32)
sky = np.random.default_rng(2).random((64, 128), dtype=np.float32) ** 8
directions = np.random.default_rng(3).normal(size=(1000, 3))
points = np.random.default_rng(4).random((5000, 3))
q = points[:100]
mask = np.zeros((32, 48), np.uint8)
mask[8:24, 4:12] = 1
big = np.random.default_rng(5).random((1024, 512, 1), dtype=np.float32)

# fmt: off
import cumulus
with cumulus.connect() as c:                       # CUMULUS_SERVER, or a private daemon
    small = c.blur(image, sigma=8, boundary=("repeat", "clamp"))
    table = c.sampling_table(sky)                  # .sample(4096), .pdf(directions), .save("sky.cst"), cumulus.load(...)
    d, i  = c.kd_tree(points).query(q, k=8)
    runs  = c.run_length(mask)                     # runs[10:20, 5:9], runs.area, runs.to_coco()
    resident = c.upload(big); c.blur(resident, 8).summed_area_table().numpy()   # handles chain without a transfer
# fmt: on

    # What its comments name, and what is right.
    samples = table.sample(4096)
    densities = table.pdf(directions)
    table.save("sky.cst")
    again = cumulus.load("sky.cst")
    part, area, coco = runs[10:20, 5:9], runs.area, runs.to_coco()
    chained = c.blur(resident, 8).summed_area_table().numpy()
    blurred = c.blur(big, 8)

assert small.shape == image.shape and np.allclose(small.mean(), image.mean(), atol=0.01) and small.std() < image.std() / 4
assert np.allclose(np.linalg.norm(samples.direction, axis=1), 1, atol=1e-5)
shares = again.probabilities()
v, u = (np.clip((samples.position[:, axis] * sky.shape[1 - axis]).astype(int), 0, sky.shape[1 - axis] - 1) for axis in (1, 0))
assert (shares[v, u] > 0).all() and shares[v, u].mean() > 2 * shares.mean()
near = [np.isclose(again.pdf(directions), densities, rtol=1e-5), np.isclose(again.sample(4096).position, samples.position, atol=1e-6)]
assert min(each.mean() for each in near) > 0.99  # on a GPU a direction on an edge may be in the next texel
exact = np.linalg.norm(q[:, None] - points[None], axis=2)
assert np.allclose(d, np.sort(exact, axis=1)[:, :8]) and np.array_equal(i[:, 0], np.arange(100))
assert np.array_equal(part, mask[10:20, 5:9]) and area == mask.sum() == 128
assert coco["size"] == [32, 48] and np.array_equal(cumulus.RunLengths.from_coco(coco).numpy(), mask)
assert np.allclose(chained[-1, -1], blurred.sum(dtype=np.float64), rtol=1e-5)
print("the tour is over")
