"""The client of a Cumulus server, and how one connects."""

from __future__ import annotations

from typing import Optional, Union

from .client_base import ClientBase
from .connection import Connection, Progress, seconds
from .credentials import Credentials, read_settings
from .daemon import PrivateDaemon
from .device_sharing.operations import DeviceSharing
from .errors import wrong
from .image_operations import ImageOperations
from .pipeline import Pipeline
from .structure_operations import StructureOperations


class Client(ImageOperations, StructureOperations, DeviceSharing, ClientBase):
    """A connection to one server, and the arrays that it keeps there. Made by `connect`; close it, or use it as a context.

    What an operation is given decides where its results are: of numpy arrays (or image files) it answers numpy arrays;
    of a `Buffer` the results stay on the server as buffers, and the next operation on them transfers nothing. Arrays
    are sent without a copy where they are contiguous and little-endian; bool counts as uint8. Arrays of other libraries are
    taken, too: from host memory without a copy; from a GPU (PyTorch, CuPy, Numba, JAX) by copies within it where the server
    shares its memory, else by one to host memory, which their library makes. Pairs are (along x, along y). Methods may be called from several threads at once.

    Every operation takes `timeout`, `request_id`, `priority`, `ttl` and `evictable` besides its own arguments
    (`CallOptions`), and may raise any `Error`.
    """

    def pipeline(self) -> Pipeline:
        """Operations that are to run as one call."""
        return Pipeline(self)


def connect(address: Optional[str] = None, *, backend: str = "", device: str = "", timeout: float = 300.0,
            connect_timeout: float = 10.0, connections: int = 1, lease: Optional[float] = None,
            progress: Union[bool, Progress] = False, dead_after: float = 40.0, recreate: bool = False,
            max_outage: float = 30.0, tls_ca: str = "", tls_cert: str = "", tls_key: str = "",
            token_file: str = "", shared_memory: bool = True) -> "Client":
    """Connects to a server.

    Args:
        address: HOST:PORT, [HOST6]:PORT or unix:PATH. Without one CUMULUS_SERVER or the configuration file's, and
            without those, or with a `backend`, a private cumulusd that lives as long as the client.
        backend: of a private cumulusd, "cpu", "cuda" or "auto"; it chooses without.
        device: of the server, "cuda0" for instance; the one with the fewest sessions and the least work without.
        timeout: seconds for calls that name none. Transfers get one more for each 16 MiB.
        connect_timeout: seconds for the first answer.
        connections: TCP connections; transfers of several threads are spread over them.
        lease: seconds that the server keeps buffers of a client that has vanished; its default without.
        progress: True shows bars of tqdm, where that is installed, for transfers of 16 MiB and more; or a function that
            is called with the bytes that are done and all bytes.
        dead_after: seconds without a sign of life after which a server counts as dead.
        recreate: when the server has restarted or the session is lost otherwise, make the session again, and each buffer
            when it is next needed: uploaded again, or computed again from what it came from. The client holds the arrays
            that were uploaded for that; change one, and the call that needs it raises `DataLoss`.
        max_outage: seconds that a call then goes on trying while no server answers.
        tls_ca: file of the authorities of the server's certificate, PEM: encrypts the connection.
        tls_cert: file of the client's own certificate, PEM, and tls_key that of its key, for servers that ask for one.
        token_file: file with the client's token, for servers that ask for one.
        shared_memory: arrays of 256 KiB and more go through memory that client and server both map, where the address is a
            Unix socket, localhost or a loopback address and the server, of this machine and user, has such; False: never.

    Files of TLS and tokens come from the environment (CUMULUS_TLS_CA, CUMULUS_TLS_CERT, CUMULUS_TLS_KEY, CUMULUS_TOKEN_FILE) or the
    configuration file (`cumulus.credentials.read_settings`) where they are not given. Unix sockets have no need of any.

    Raises:
        Unauthenticated: the server wants to know who asks, and does not know this client.
        Unavailable: no server answers, or none can be started; the text says what to do.

    The connection uses no HTTP proxy.
    """
    if address is not None and not isinstance(address, str):
        raise wrong("address", f"is {address!r}", "HOST:PORT or unix:PATH, as a str,")
    for name, given in (("connect_timeout", connect_timeout), ("timeout", timeout), ("max_outage", max_outage)):
        seconds(given, name)
    if backend not in ("", "cpu", "cuda", "auto"):
        raise wrong("backend", f"is {backend!r}", "'cpu', 'cuda' or 'auto'")
    if not isinstance(connections, int) or connections < 1:
        raise wrong("connections", f"is {connections}", "at least 1")
    if address and backend:
        raise wrong("backend", f"is '{backend}', and {address} has its own", "an address, or the backend of a private cumulusd")
    daemon = None
    server, known = read_settings()
    target = address or ("" if backend else server)
    if not target:
        daemon = PrivateDaemon(backend)
        target = daemon.address
    connection = Connection(target, size=connections, connect_timeout=connect_timeout, call_timeout=timeout,
                            dead_after=dead_after,
                            credentials=Credentials(tls_ca or known.tls_ca, tls_cert or known.tls_cert,
                                                    tls_key or known.tls_key, token_file or known.token_file),
                            shared_memory=shared_memory)
    try:
        connection.wait(connect_timeout)
        return Client(connection, daemon, device=device, lease=lease, progress=progress, recreate=recreate,
                      max_outage=max_outage)
    except BaseException:
        connection.close()
        if daemon is not None:
            daemon.stop()
        raise
