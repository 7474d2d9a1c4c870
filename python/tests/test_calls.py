"""How calls go wrong, are repeated, resumed and renewed: against a server that a test chooses."""

import time

import cumulus
import google_crc32c
import grpc
import numpy as np
import pytest
from cumulus.v1 import array_pb2, recursive_filter_pb2, sessions_pb2, transfer_pb2
from fake_server import CHUNK, DATA, abort, buffer, connect, hanging, receive, resident, server  # noqa: F401


@pytest.mark.parametrize("method", ["WriteBuffer", "ReadBuffer"])
def test_what_a_progress_function_raises_comes_out(server, method):
    def write(requests, context):
        if not receive(requests)[-1].finish_write:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the upload is incomplete")
        return buffer("sessions/s/buffers/b", DATA)

    def stop(done, total):
        if method == "WriteBuffer" or server.count("ReadBuffer"):
            raise RuntimeError("that is enough")

    server.handlers["WriteBuffer"] = write
    server.handlers["ReadBuffer"] = lambda request, _: (chunk(DATA.tobytes(), at) for at in range(0, DATA.nbytes, CHUNK))
    with connect(server, progress=stop) as c, pytest.raises(RuntimeError, match="that is enough"):
        c.upload(DATA).numpy()
    assert server.count(method) <= 1  # an upload may end before it has begun


def test_an_upload_that_is_turned_away_begins_again(server):
    attempts = []

    def write(requests, context):
        attempts.append(b"".join(message.data for message in receive(requests)))
        if len(attempts) < 3:
            abort(context, grpc.StatusCode.UNAVAILABLE, "QUEUE_FULL", 0.01)
        return buffer("sessions/s/buffers/b", DATA)

    server.handlers["WriteBuffer"] = write
    with connect(server) as c:
        c.upload(DATA)
    assert attempts == [DATA.tobytes()] * 3


def chunk(data, offset, checksum=None):
    part = data[offset : offset + CHUNK]
    checksum = google_crc32c.value(part) if checksum is None else checksum
    return transfer_pb2.ReadBufferResponse(offset=offset, crc32c=checksum, data=part).SerializeToString()


def test_a_download_goes_on_where_it_broke(server):
    offsets = []

    def read(request, context):
        offsets.append(transfer_pb2.ReadBufferRequest.FromString(request).read_offset)
        for offset in range(offsets[-1], DATA.nbytes, CHUNK):
            if offset - offsets[-1] == CHUNK and len(offsets) < 3:
                context.abort(grpc.StatusCode.UNAVAILABLE, "the connection broke")
            yield chunk(DATA.tobytes(), offset)

    server.handlers["ReadBuffer"] = read
    with connect(server) as c:
        assert np.array_equal(resident(server, c).numpy(), DATA)
    assert offsets == [0, CHUNK, 2 * CHUNK]


@pytest.mark.parametrize("message, says", [
    (chunk(DATA.tobytes(), 0, checksum=1), "crc32c"), (chunk(DATA.tobytes(), CHUNK), "says that it is at byte"),
    (b"\xff\xff", "damaged"), (chunk(bytes(DATA.nbytes + 4), 0)[:-1], "damaged")])
def test_damaged_chunks_are_refused(server, message, says):
    server.handlers["ReadBuffer"] = lambda request, context: iter([message])
    with connect(server) as c, pytest.raises(cumulus.DataLoss, match=says):
        resident(server, c).numpy()


def test_a_download_that_ends_early_is_refused(server):
    server.handlers["ReadBuffer"] = lambda request, context: iter([chunk(DATA.tobytes(), 0)])
    with connect(server) as c, pytest.raises(cumulus.DataLoss, match="never came"):
        resident(server, c).numpy()


def test_a_call_is_repeated_while_the_server_says_when_to_come_back(server):
    server.handlers["GetSession"] = lambda request, context: (
        b"" if server.count("GetSession") > 2 else abort(context, grpc.StatusCode.UNAVAILABLE, "QUEUE_FULL", 0.01))
    with connect(server) as c:
        c.session.renew()
    assert server.count("GetSession") == 3


def test_a_call_is_not_repeated_beyond_its_deadline(server):
    server.handlers["GetSession"] = lambda request, context: abort(
        context, grpc.StatusCode.UNAVAILABLE, "QUEUE_FULL", 60)
    with connect(server, timeout=0.5) as c:
        start = time.monotonic()
        with pytest.raises(cumulus.Unavailable) as refused:
            c.session.renew()
    assert time.monotonic() - start < 2
    assert refused.value.reason == "QUEUE_FULL" and refused.value.retry_delay == 60


def test_other_codes_are_not_repeated(server):
    server.handlers["GetSession"] = lambda request, context: abort(
        context, grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED", 0.01)
    with connect(server) as c, pytest.raises(cumulus.ResourceExhausted):
        c.session.renew()
    assert server.count("GetSession") == 1


def test_leases_are_renewed_and_buffers_released(server):
    def wait_for(method):
        start = time.monotonic()
        while not server.count(method) and time.monotonic() < start + 10:
            time.sleep(0.01)
        return time.monotonic() - start

    with connect(server, lease=3.0) as c:
        array = resident(server, c)
        assert 0.5 < wait_for("GetSession") < 3.0  # a third of the lease
        assert server.count("BatchDeleteBuffers") == 0
        del array
        wait_for("BatchDeleteBuffers")
        assert server.count("BatchDeleteBuffers") == 1
    assert server.count("DeleteSession") == 1


def test_buffers_released_soon_after_one_another_are_deleted_by_one_call(server):
    batches = []

    def delete(request, context):
        call = sessions_pb2.BatchDeleteBuffersRequest.FromString(request)
        batches.append((call.parent, list(call.names), call.allow_missing))
        return b""

    server.handlers["BatchDeleteBuffers"] = delete
    with connect(server) as c:
        session = c.session
        names = [f"{session.name}/buffers/{i}" for i in range(1500)]
        for name in names:
            session.release(name, 256)
        for _ in range(1000):
            if sum(len(batch[1]) for batch in batches) == len(names):
                break
            time.sleep(0.01)
    assert [name for batch in batches for name in batch[1]] == names
    assert len(batches) <= 4 and max(len(batch[1]) for batch in batches) <= 1000
    assert all(batch[0] == session.name and batch[2] for batch in batches)


def test_large_buffers_are_deleted_at_once(server, monkeypatch):
    monkeypatch.setattr("cumulus.session._GATHER_SECONDS", 60.0)
    with connect(server) as c:
        c.session.release(f"{c.session.name}/buffers/1", 100)
        time.sleep(0.05)
        assert server.count("BatchDeleteBuffers") == 0
        c.session.release(f"{c.session.name}/buffers/2", 16 << 20)
        for _ in range(1000):
            if server.count("BatchDeleteBuffers"):
                break
            time.sleep(0.01)
        assert server.count("BatchDeleteBuffers") == 1


def test_a_lost_session_is_made_anew(server):
    server.handlers["EncodeRunLengths"] = lambda request, context: abort(
        context, grpc.StatusCode.NOT_FOUND, "SESSION_EXPIRED")
    with connect(server) as c:
        array = resident(server, c)
        with pytest.raises(cumulus.NotFound) as lost:
            c.run_length(array)
        assert "upload again" in lost.value.cure
        resident(server, c)
    assert server.count("CreateSession") == 2


class Restartable:
    """What a server answers of sessions and buffers that can lose them all."""

    def __init__(self, server):
        self.server = server
        self.buffers = {}
        self.instance = "1"
        self.metadata = []
        self.blocked = 0
        server.handlers.update(CreateSession=self.create, WriteBuffer=self.write, ReadBuffer=self.read,
                               ApplyRecursiveFilter=self.filter, BatchDeleteBuffers=self.delete)

    def restart(self):
        self.buffers.clear()
        self.instance = str(int(self.instance) + 1)

    def check(self, context):
        sent = dict(context.invocation_metadata())
        self.metadata.append(sent)
        if self.blocked:
            self.blocked -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "nobody there")
        if sent.get("cumulus-instance") != self.instance:
            abort(context, grpc.StatusCode.NOT_FOUND, "INSTANCE_RESTARTED")

    def create(self, request, context):
        name = "sessions/" + sessions_pb2.CreateSessionRequest.FromString(request).session_id
        return sessions_pb2.Session(name=name, device="cpu", instance=self.instance).SerializeToString()

    def add(self, session, data):
        name = f"{session}/buffers/{len(self.buffers) + 1}"
        self.buffers[name] = data
        return buffer(name, data)

    def write(self, requests, context):
        messages = receive(requests)
        self.check(context)
        data = np.frombuffer(b"".join(message.data for message in messages), np.float32).reshape(IMAGE.shape)
        return self.add(messages[0].spec.session, data)

    def read(self, request, context):
        self.check(context)
        data = self.buffers[transfer_pb2.ReadBufferRequest.FromString(request).name].tobytes()
        yield chunk(data, 0)

    def filter(self, request, context):
        self.check(context)
        call = recursive_filter_pb2.ApplyRecursiveFilterRequest.FromString(request)
        answer = array_pb2.OperationResult()
        named = answer.arrays.add(name="image")
        named.buffer.ParseFromString(self.add(call.options.session, self.buffers[call.image.buffer] + 1))
        return answer.SerializeToString()

    def delete(self, request, context):
        for name in sessions_pb2.BatchDeleteBuffersRequest.FromString(request).names:
            self.buffers.pop(name, None)
        return b""


IMAGE = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_calls_say_whose_handles_they_name(server):
    world = Restartable(server)
    with connect(server) as c:
        c.upload(IMAGE).numpy()
        session = c.session.name
    assert [(each["cumulus-session"], each["cumulus-instance"]) for each in world.metadata] == [(session, "1")] * 2


def test_without_recreate_a_restart_is_said(server):
    world = Restartable(server)
    with connect(server) as c:
        array = c.upload(IMAGE)
        world.restart()
        with pytest.raises(cumulus.NotFound) as lost:
            array.numpy()
        assert lost.value.reason == "INSTANCE_RESTARTED"


def test_buffers_are_made_again_from_what_they_came_from(server):
    world = Restartable(server)
    with connect(server, recreate=True) as c:
        blurred = c.blur(c.blur(c.upload(IMAGE), 1), 1)  # the first two have no handle any more
        assert (blurred.numpy() == IMAGE + 2).all()
        name = blurred.name
        world.restart()
        world.blocked = 2
        assert (blurred.numpy() == IMAGE + 2).all()
        assert blurred.name != name
        for _ in range(500):  # what was made for this alone goes
            if list(world.buffers) == [blurred.name]:
                break
            time.sleep(0.01)
        assert list(world.buffers) == [blurred.name]
        world.restart()
        assert (c.blur(blurred, 1).numpy() == IMAGE + 3).all()


def test_an_array_that_has_changed_is_not_uploaded_again(server):
    world = Restartable(server)
    image = IMAGE.copy()
    with connect(server, recreate=True) as c:
        array = c.upload(image)
        image[1, 1] = -1
        world.restart()
        with pytest.raises(cumulus.DataLoss) as changed:
            c.blur(array, 1)
        assert "upload a copy" in changed.value.cure
        image[1, 1] = IMAGE[1, 1]
        assert (c.blur(array, 1).numpy() == IMAGE + 1).all()


def test_an_outage_is_waited_for_no_longer_than_allowed(server):
    world = Restartable(server)
    with connect(server, recreate=True, max_outage=0.5) as c:
        array = c.upload(IMAGE)
        world.blocked = 1000
        start = time.monotonic()
        with pytest.raises(cumulus.Unavailable):
            c.blur(array, 1)
        assert 0.25 < time.monotonic() - start < 5  # three waits, of 0.2625 s at least; the fourth would end too late


def test_a_deadline_ends_a_call(server):
    with connect(server, timeout=0.3) as c:
        c.session
        hanging(server, "GetSession")
        with pytest.raises(cumulus.DeadlineExceeded, match=server.address) as error:
            c.session.renew()
        assert "timeout" in error.value.cure and error.value.cure in str(error.value)


def test_no_server():
    with pytest.raises(cumulus.Unavailable) as refused:
        cumulus.connect("127.0.0.1:1", connect_timeout=0.3)
    assert "start cumulusd at 127.0.0.1:1" in refused.value.cure
    assert isinstance(refused.value, ConnectionError)
