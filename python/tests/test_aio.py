"""cumulus.aio: the same results, at once; cancelled tasks cancel their calls."""

import asyncio

import cumulus
import cumulus.aio
import numpy as np
import pytest
from fake_server import FakeServer, hanging

RANDOM = np.random.default_rng(9)


def test_the_same_results(client):
    image = RANDOM.random((200, 300), dtype=np.float32)
    points = RANDOM.random((500, 3))

    async def run():
        async with cumulus.aio.connect(client.address) as c:
            blurred, table, tree, runs = await asyncio.gather(
                c.blur(image, 8), c.sampling_table(image), c.kd_tree(points), c.run_length(image > 0.5))
            resident = await c.upload(image)
            assert resident.shape == image.shape and "aio" in repr(resident)
            chained = await (await (await c.blur(resident, 8)).summed_area_table()).numpy()
            return (blurred, await table.sample(100), await tree.query(points, 2), await runs.to_coco(), chained,
                    await (await c.blur(resident, 8)).numpy())

    blurred, samples, (distances, indices), coco, chained, again = asyncio.run(run())
    assert np.array_equal(blurred, client.blur(image, 8)) and np.array_equal(again, blurred)
    assert np.array_equal(samples.pdf, client.sampling_table(image).sample(100).pdf)
    assert np.array_equal(distances, client.kd_tree(points).query(points, 2)[0]) and (indices[:, 0] == range(500)).all()
    assert coco == client.run_length(image > 0.5).to_coco()
    assert np.array_equal(chained, client.upload(image).blur(8).summed_area_table().numpy())


def test_every_operation_is_there():
    plain = {name for name in dir(cumulus.Client) if not name.startswith("_")}
    there = {name for name in dir(cumulus.aio.Client) if not name.startswith("_")}
    of_the_library = {"begin", "call", "given", "note_timings", "progress_of", "recovering", "run_on", "whole", "write"}
    assert plain - there == {"address", "session", "timings"} | of_the_library


@pytest.mark.parametrize("name", ["Buffer", "KdTree", "RunLengths", "SamplingTable", "SummedAreaTable"])
def test_handles_have_the_same_names(name):
    """But for what draws, which is no work for a thread, makes one without a server, or is the plain handle's."""
    of_sync = {"plot", "from_bytes", "from_coco", "from_file", "buffer"}
    passed_on = set(cumulus.aio.PLAIN_NAMES)
    plain = {each for each in dir(getattr(cumulus, name)) if not each.startswith("_")}
    assert plain - set(dir(getattr(cumulus.aio, name))) - passed_on <= of_sync


def test_what_is_fetched_is_awaited(client):
    mask = RANDOM.random((40, 60)) > 0.5
    points = RANDOM.random((100, 3))

    async def run():
        async with cumulus.aio.connect(client.address) as c:
            resident = await c.upload(mask)
            runs, tree = await asyncio.gather(c.run_length(resident), c.kd_tree(await c.upload(points)))
            table = await c.sampling_table(mask.astype(np.float32))
            return await runs[10:20, 5:9], await runs.area, await runs.box, await tree.points, await table.probabilities()

    part, area, box, fetched, probabilities = asyncio.run(run())
    runs = client.run_length(mask)
    assert np.array_equal(part, mask[10:20, 5:9]) and area == mask.sum() and np.array_equal(box, runs.box)
    assert np.array_equal(fetched, client.kd_tree(points).points)
    assert np.array_equal(probabilities, client.sampling_table(mask.astype(np.float32)).probabilities())


def test_a_cancelled_task_cancels_its_call():
    async def run(server):
        async with cumulus.aio.connect(server.address) as c:
            ended = hanging(server, "EncodeRunLengths")
            task = asyncio.ensure_future(c.run_length(np.zeros(5)))
            while not server.count("EncodeRunLengths"):
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await asyncio.to_thread(ended.wait, 2)

    with FakeServer() as server:
        assert asyncio.run(run(server)), "the server was not told"


def test_errors_and_awaited_connections(client):
    async def run():
        c = await cumulus.aio.connect(client.address)
        try:
            with pytest.raises(cumulus.InvalidArgument):
                await c.blur(np.zeros((4, 4), np.float32), 0.1)
        finally:
            await c.close()

    asyncio.run(run())


def test_a_closed_client_says_so_and_what_is_here_is_still_answered(client):
    async def run():
        async with cumulus.aio.connect(client.address) as c:
            runs = await c.run_length(np.eye(8, dtype=np.uint8))
        await c.close()
        with pytest.raises(cumulus.Unavailable, match="has been closed"):
            await c.blur(np.zeros((4, 4), np.float32), 2)
        return await runs.area

    assert asyncio.run(run()) == 8


def test_buffers_of_handles_are_there_without_waiting(client):
    image = np.ones((8, 8), np.float32)

    async def run():
        async with cumulus.aio.connect(client.address) as c:
            sky = await c.sampling_table(image)
            sums = (await c.summed_area_table(image, squares=True)).squares
            p = c.pipeline()
            table = await p.sampling_table(await p.blur(image, 3))
            got = await p.run({"table": table.buffer})
            return await sky.buffer.numpy(), await sums.numpy(), got["table"]

    fetched, squares, built = asyncio.run(run())
    assert np.array_equal(fetched, client.sampling_table(image).buffer.numpy()) and squares[-1, -1] == 64 and built.size
