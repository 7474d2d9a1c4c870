"""Pipelines: the results of separate calls, in one."""

import asyncio
import gc
import sys
import time

import cumulus
import cumulus.aio
import numpy as np
import pytest

RANDOM = np.random.default_rng(31)


@pytest.fixture(scope="module")
def sky():
    return RANDOM.random((96, 192), dtype=np.float32)


def chain(c, sky):
    """Five operations, by a client or a pipeline."""
    blurred = c.blur(sky, 3, boundary=("repeat", "clamp"))
    table = c.sampling_table(blurred)
    drawn = table.sample(64)
    means = c.box_filter(blurred, 4)
    sums = c.summed_area_table(means).sum(np.array([[0, 0, 96, 192], [3, 5, 40, 80]], np.int32))
    return {"table": table.buffer, "position": drawn.position, "direction": drawn.direction, "means": means, "sums": sums}


def test_a_chain_of_arrays_has_the_results_of_separate_calls(client, sky):
    p = client.pipeline()
    got = p.run(chain(p, sky))
    alone = chain(client, sky)
    assert list(got) == list(alone)
    for name, array in got.items():
        assert isinstance(array, np.ndarray), name
        assert np.array_equal(array, np.asarray(alone[name])), name


def test_of_buffers_results_stay(client, sky):
    resident = client.upload(sky)
    p = client.pipeline()
    arrays = chain(p, resident)
    kept = p.run({"means": arrays["means"]}, priority="batch", timeout=30)
    assert isinstance(kept["means"], cumulus.Buffer) and kept["means"].shape == sky.shape
    fetched = p.run({"means": arrays["means"]}, resident=False)
    assert np.array_equal(fetched["means"], kept["means"].numpy())
    assert np.array_equal(fetched["means"], client.box_filter(client.blur(sky, 3, boundary=("repeat", "clamp")), 4))


def test_steps_may_follow_a_run(client, sky):
    p = client.pipeline()
    blurred = p.blur(sky, 2)
    first = p.run({"blurred": blurred})
    both = p.run({"twice": blurred.blur(2), "blurred": blurred})
    assert np.array_equal(first["blurred"], both["blurred"])
    assert np.array_equal(both["twice"], client.blur(client.blur(sky, 2), 2))
    assert "2 steps" in repr(p)


def test_what_is_too_large_for_the_answer_is_fetched(client):
    large = RANDOM.random((1024, 1024), dtype=np.float32)
    p = client.pipeline()
    first = p.blur(large, 2)
    got = p.run({"once": first, "sum": p.box_filter(first, 1)})
    assert isinstance(got["once"], np.ndarray)
    assert np.array_equal(got["sum"], client.box_filter(got["once"], 1))


def test_what_it_was_given_stays_until_it_runs(client, sky):
    p = client.pipeline()
    blurred = p.blur(client.upload(sky), 3)  # nobody else refers to that
    gc.collect()
    time.sleep(0.3)  # what is released is deleted within 20 ms
    assert np.array_equal(p.run({"image": blurred}, resident=False)["image"], client.blur(sky, 3))


def test_mistakes_say_where(client, sky):
    p = client.pipeline()
    blurred = p.blur(sky, 3)
    with pytest.raises(cumulus.InvalidArgument) as wrong:
        p.run({"image": p.box_filter(blurred, -1)})
    assert wrong.value.field.startswith("steps[1].filter_box.radius")
    with pytest.raises(cumulus.InvalidArgument, match="is no step of a pipeline"):
        p.run_length(sky)
    with pytest.raises(cumulus.InvalidArgument, match="of another pipeline"):
        client.pipeline().blur(blurred, 3)
    with pytest.raises(cumulus.InvalidArgument, match="another client"):
        client.blur(blurred, 3)
    with pytest.raises(cumulus.InvalidArgument, match=r"keep\['image'\]"):
        p.run({"image": client.upload(sky)})
    with pytest.raises(TypeError, match="takes no timeout"):
        p.blur(sky, 3, timeout=1)
    with pytest.raises(cumulus.FailedPrecondition, match="before its pipeline runs"):
        np.asarray(blurred)


def test_a_step_without_an_answer_names_itself(client, sky):
    p = client.pipeline()
    p.blur(sky, 3)
    table = p.sampling_table(np.zeros((8, 8), np.float32))
    with pytest.raises(cumulus.FailedPrecondition) as none:
        p.run({"table": table.buffer})
    assert none.value.metadata["step"] == "1"


def test_a_lost_session_is_made_again(client, sky):
    with cumulus.connect(client.address, recreate=True) as c:
        p = c.pipeline()
        kept = p.run({"blurred": p.blur(c.upload(sky), 3)})["blurred"]
        before = kept.numpy()
        c.call("/cumulus.v1.Sessions/DeleteSession",
               cumulus.v1.sessions_pb2.DeleteSessionRequest(name=c.session.name), bytes)
        assert np.array_equal(kept.numpy(), before)


def test_a_step_that_is_dropped_says_nothing(client, sky, monkeypatch):
    said = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    client.pipeline().blur(sky, 3)
    gc.collect()
    assert not said


def test_asynchronously(client, sky):
    async def run():
        async with cumulus.aio.connect(client.address) as c:
            p = c.pipeline()
            blurred = await p.blur(sky, 3)
            table = await p.sampling_table(blurred)
            return await p.run({"blurred": blurred, "table": table.sync.buffer})

    got = asyncio.run(run())
    assert np.array_equal(got["blurred"], client.blur(sky, 3))
    assert np.array_equal(got["table"], client.sampling_table(client.blur(sky, 3)).table)
