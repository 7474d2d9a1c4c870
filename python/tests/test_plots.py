"""Plots and what notebooks show."""

import base64
import re

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture
def things(client):
    random = np.random.default_rng(11)
    mask = np.zeros((30, 40), bool)
    mask[5:12, 8:31] = True
    return {
        "Sampling table": client.sampling_table(random.random((16, 32), dtype=np.float32)),
        "Run lengths": client.run_length(mask),
        "KD-tree": client.kd_tree(random.random((500, 3)), leaf_size=10),
    }


def test_notebooks_show_facts_and_a_picture(things):
    for title, thing in things.items():
        shown = thing._repr_html_()
        assert title in shown and shown.count("<tr>") >= 4
        picture = base64.b64decode(re.search(r"base64,([^']*)'", shown)[1])
        image = matplotlib.image.imread(__import__("io").BytesIO(picture))
        assert image.shape[0] > 100 and np.ptp(image[..., :3]) > 0.5


def test_plots_show_samples_boxes_and_masks(things):
    axes = things["Sampling table"].plot(samples=100)
    assert len(axes.collections[0].get_offsets()) == 100 and len(axes.images) == 1
    axes = things["KD-tree"].plot()
    leaves = (things["KD-tree"].nodes["is_leaf"] == 1).sum()
    assert len(axes.collections[1].get_segments()) == leaves and len(axes.collections[0].get_offsets()) == 500
    axes = things["Run lengths"].plot()
    assert axes.patches[0].get_bbox().bounds == (8, 5, 23, 7) and axes.images[0].get_array().sum() == 7 * 23


def test_progress_shows_bars(client, capsys):
    import cumulus

    pytest.importorskip("tqdm")
    with cumulus.connect(client.address, progress=True) as c:
        c.upload(np.zeros(17 << 18, np.float32)).numpy()
    bars = capsys.readouterr().err
    assert "upload" in bars and "download" in bars
