"""The client for asyncio: the same names, each to be awaited.

```python
async with cumulus.aio.connect() as c:
    small, table = await asyncio.gather(c.blur(image, 8), c.sampling_table(sky))
    samples = await table.sample(4096)
```

Calls run on a pool of threads, so that gRPC's own event loops and the program's do not meet. Cancelling a task cancels its
call on the server, too. What an operation answers as a handle is one of this module's, whose `sync` is the plain one.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
from typing import Any, Awaitable, Callable, Dict, Generator, Mapping, Optional, Type

from . import buffer, client, kd_tree, run_length, sampling_table, summed_area_table
from .cancellation import Cancellation
from .errors import Error


class _Threads:
    """Runs plain calls for tasks."""

    def __init__(self, count: int) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(count, thread_name_prefix="cumulus-aio")
        self._closed = False

    async def run(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        if self._closed:  # nothing is waited for any more: the plain client says so, and what is here is still answered
            return function(*arguments, **options)
        scope = Cancellation()

        def call() -> Any:
            with scope:
                return function(*arguments, **options)

        running = asyncio.get_running_loop().run_in_executor(self._pool, call)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            scope.cancel()
            try:
                await running  # at once: its call has been cancelled
            except Error:
                pass
            raise

    def close(self) -> None:
        self._closed = True
        self._pool.shutdown(wait=False)


PLAIN_NAMES = ("shape", "dtype", "ndim", "size", "nbytes", "name", "leaf_size", "order", "pixels", "resident", "exclusive",
               "address", "capabilities", "buffer", "sums", "squares")
"""What handles answer without waiting."""


class _Handle:
    """Something of the plain client's; what does not wait is asked of it directly."""

    def __init__(self, threads: _Threads, sync: Any) -> None:
        self._threads = threads
        self.sync = sync

    def __getattr__(self, name: str) -> Any:
        if name in PLAIN_NAMES:
            return _wrapped(self._threads, getattr(self.sync, name))
        raise AttributeError(f"{type(self).__name__} has no {name!r} that waits for nothing; its `sync` may have it")

    def __repr__(self) -> str:
        return repr(self.sync).replace("<cumulus.", "<cumulus.aio.")


def _plain(value: Any) -> Any:
    return value.sync if isinstance(value, _Handle) else value


def _wrapped(threads: _Threads, value: Any) -> Any:
    """Handles of the plain client as this module's, in tuples too."""
    if type(value) is tuple:
        return tuple(_wrapped(threads, each) for each in value)
    kind = _KINDS.get(type(value))
    return value if kind is None else kind(threads, value)


def _awaited(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """A method that runs `function` of the plain class on a thread."""

    @functools.wraps(function)
    async def method(self: _Handle, *arguments: Any, **options: Any) -> Any:
        plain = [_plain(value) for value in arguments]
        named = {name: _plain(value) for name, value in options.items()}
        return _wrapped(self._threads, await self._threads.run(function, self.sync, *plain, **named))

    return method


def _awaited_value(value: Any) -> property:
    """A property that may have to fetch what it says: `await runs.area`."""
    method = _awaited(value.fget)
    return property(lambda self: method(self), doc=value.__doc__)


class Buffer(_Handle):
    """`cumulus.Buffer`."""

    numpy = _awaited(buffer.Buffer.numpy)
    blur = _awaited(buffer.Buffer.blur)
    filter = _awaited(buffer.Buffer.filter)
    bspline_prefilter = _awaited(buffer.Buffer.bspline_prefilter)
    box_filter = _awaited(buffer.Buffer.box_filter)
    summed_area_table = _awaited(buffer.Buffer.summed_area_table)
    sampling_table = _awaited(buffer.Buffer.sampling_table)
    kd_tree = _awaited(buffer.Buffer.kd_tree)
    run_length = _awaited(buffer.Buffer.run_length)
    match_brackets = _awaited(buffer.Buffer.match_brackets)

    def delete(self) -> None:
        """Releases the server's memory now; waits for nothing."""
        self.sync.delete()


class SummedAreaTable(_Handle):
    """`cumulus.SummedAreaTable`."""

    numpy = _awaited(summed_area_table.SummedAreaTable.numpy)
    sum = _awaited(summed_area_table.SummedAreaTable.sum)
    mean = _awaited(summed_area_table.SummedAreaTable.mean)
    variance = _awaited(summed_area_table.SummedAreaTable.variance)


class SamplingTable(_Handle):
    """`cumulus.SamplingTable`."""

    sample = _awaited(sampling_table.SamplingTable.sample)
    pdf = _awaited(sampling_table.SamplingTable.pdf)
    save = _awaited(sampling_table.SamplingTable.save)
    local = _awaited(sampling_table.SamplingTable.local)
    to = _awaited(sampling_table.SamplingTable.to)
    probabilities = _awaited(sampling_table.SamplingTable.probabilities)
    header = _awaited_value(sampling_table.SamplingTable.header)
    table = _awaited_value(sampling_table.SamplingTable.table)


class KdTree(_Handle):
    """`cumulus.KdTree`."""

    query = _awaited(kd_tree.KdTree.query)
    counts = _awaited(kd_tree.KdTree.counts)
    sums = _awaited(kd_tree.KdTree.sums)
    lists = _awaited(kd_tree.KdTree.lists)
    save = _awaited(kd_tree.KdTree.save)
    to_sklearn = _awaited(kd_tree.KdTree.to_sklearn)
    to = _awaited(kd_tree.KdTree.to)
    points = _awaited_value(kd_tree.KdTree.points)
    nodes = _awaited_value(kd_tree.KdTree.nodes)
    idx_array = _awaited_value(kd_tree.KdTree.idx_array)
    node_bounds = _awaited_value(kd_tree.KdTree.node_bounds)
    payload = _awaited_value(kd_tree.KdTree.payload)


class RunLengths(_Handle):
    """`cumulus.RunLengths`; a part is awaited too: `await runs[10:20, 5:9]`."""

    __getitem__ = _awaited(run_length.RunLengths.__getitem__)
    area = _awaited_value(run_length.RunLengths.area)
    box = _awaited_value(run_length.RunLengths.box)
    symbols = _awaited_value(run_length.RunLengths.symbols)
    lengths = _awaited_value(run_length.RunLengths.lengths)

    decode = _awaited(run_length.RunLengths.decode)
    numpy = _awaited(run_length.RunLengths.numpy)
    to_coco = _awaited(run_length.RunLengths.to_coco)
    save = _awaited(run_length.RunLengths.save)


_KINDS: Dict[type, Type[_Handle]] = {
    buffer.Buffer: Buffer,
    summed_area_table.SummedAreaTable: SummedAreaTable,
    sampling_table.SamplingTable: SamplingTable,
    kd_tree.KdTree: KdTree,
    run_length.RunLengths: RunLengths,
}


class _Operations(_Handle):
    """What clients and pipelines have."""

    blur = _awaited(client.Client.blur)
    filter = _awaited(client.Client.filter)
    bspline_prefilter = _awaited(client.Client.bspline_prefilter)
    box_filter = _awaited(client.Client.box_filter)
    box_statistics = _awaited(client.Client.box_statistics)
    summed_area_table = _awaited(client.Client.summed_area_table)
    sampling_table = _awaited(client.Client.sampling_table)
    kd_tree = _awaited(client.Client.kd_tree)
    left_balanced_kd_tree = _awaited(client.Client.left_balanced_kd_tree)
    run_length = _awaited(client.Client.run_length)
    decode_run_lengths = _awaited(client.Client.decode_run_lengths)
    match_brackets = _awaited(client.Client.match_brackets)
    intersect_clips = _awaited(client.Client.intersect_clips)


class Pipeline(_Operations):
    """`cumulus.Pipeline`. Steps are awaited too, since large arrays are uploaded when they are named; one at a time."""

    async def run(self, keep: Mapping[str, Any], **options: Any) -> Dict[str, Any]:
        """As `cumulus.Pipeline.run`."""
        plain = {name: _plain(array) for name, array in keep.items()}
        arrays = await self._threads.run(self.sync.run, plain, **options)
        return {name: _wrapped(self._threads, array) for name, array in arrays.items()}


class Client(_Operations):
    """`cumulus.Client`. Made by `connect`; close it, or use it as an asynchronous context."""

    upload = _awaited(client.Client.upload)
    allocate_shared = _awaited(client.Client.allocate_shared)
    import_buffer = _awaited(client.Client.import_buffer)
    allocate_device_array = _awaited(client.Client.allocate_device_array)
    upload_device_array = _awaited(client.Client.upload_device_array)

    def pipeline(self) -> Pipeline:
        """As `cumulus.Client.pipeline`; waits for nothing."""
        return Pipeline(self._threads, self.sync.pipeline())

    async def close(self) -> None:
        """As `cumulus.Client.close`."""
        await self._threads.run(self.sync.close)
        self._threads.close()

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class connect:
    """As `cumulus.connect`, to be awaited or entered: `await connect()`, or `async with connect() as c`.

    Args:
        threads: calls at once; more wait.
    """

    def __init__(self, address: Optional[str] = None, *, threads: int = 16, **options: Any) -> None:
        self._threads = _Threads(threads)
        self._call = functools.partial(client.connect, address, **options)
        self._client: Optional[Client] = None

    async def _connect(self) -> Client:
        return Client(self._threads, await self._threads.run(self._call))

    def __await__(self) -> Generator[Any, None, Client]:
        return self._connect().__await__()

    async def __aenter__(self) -> Client:
        self._client = await self._connect()
        return self._client

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.close()


__all__ = ["Buffer", "Client", "KdTree", "Pipeline", "RunLengths", "SamplingTable", "SummedAreaTable", "connect"]
