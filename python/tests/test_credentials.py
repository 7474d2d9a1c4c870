"""How a client says who it is, to a real cumulusd with TLS and tokens."""

import shutil
import subprocess
import time

import cumulus
import numpy as np
import pytest
from conftest import PROGRAMS
from cumulus import credentials

OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="certificates are made with the program openssl")


def openssl(*words):
    subprocess.run([OPENSSL, *map(str, words)], check=True, capture_output=True)


def make_pair(folder, name, authority=None, alternative=""):
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", f"/CN={name}", "-keyout", key, "-out", certificate]
    if authority:
        words += ["-CA", folder / f"{authority}.pem", "-CAkey", folder / f"{authority}.key",
                  "-addext", "basicConstraints=critical,CA:FALSE", "-addext", f"subjectAltName={alternative}"]
    openssl(*words)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    make_pair(folder, "ca")
    make_pair(folder, "server", "ca", "IP:127.0.0.1")
    make_pair(folder, "render", "ca", "DNS:render-7")
    for name, role in (("alice", "user"), ("scraper", "metrics")):
        made = subprocess.run([PROGRAMS / "cumulusd", "token", name, "--role", role, "--token-file", folder / "tokens"],
                              check=True, capture_output=True, text=True)
        (folder / name).write_text(made.stdout)
    return folder


@pytest.fixture(scope="module")
def address(files):
    port_file = files / "address"
    daemon = subprocess.Popen([PROGRAMS / "cumulusd", "--listen", "127.0.0.1:0", "--port-file", port_file, "--backend",
                               "cpu", "--lame-duck", "0", "--tls-cert", files / "server.pem", "--tls-key",
                               files / "server.key", "--tls-client-ca", files / "ca.pem", "--token-file",
                               files / "tokens"])
    while not port_file.exists() and daemon.poll() is None:
        time.sleep(0.01)
    yield port_file.read_text().strip()
    daemon.terminate()
    daemon.wait()


def test_a_token_opens_the_server(address, files):
    with cumulus.connect(address, tls_ca=str(files / "ca.pem"), token_file=str(files / "alice")) as c:
        array = np.arange(1 << 20, dtype=np.float32)  # more than travels inline: unary calls and streams carry it
        assert np.array_equal(c.upload(array).numpy(), array)


def test_a_certificate_opens_the_server(address, files):
    with cumulus.connect(address, tls_ca=str(files / "ca.pem"), tls_cert=str(files / "render.pem"),
                         tls_key=str(files / "render.key")) as c:
        assert c.capabilities.max_sessions > 0


def test_without_either_the_cure_is_said(address, files):
    with pytest.raises(cumulus.Unauthenticated) as raised:
        cumulus.connect(address, tls_ca=str(files / "ca.pem"))
    assert raised.value.reason == "CREDENTIALS_MISSING" and "token_file" in raised.value.cure
    with pytest.raises(cumulus.PermissionDenied):
        cumulus.connect(address, tls_ca=str(files / "ca.pem"), token_file=str(files / "scraper"))


def test_certificates_that_do_not_fit_are_named_at_once(address, files, tmp_path):
    make_pair(tmp_path, "other")
    begin = time.monotonic()
    with pytest.raises(cumulus.Unauthenticated, match="no authority in tls_ca has issued"):
        cumulus.connect(address, tls_ca=str(tmp_path / "other.pem"))
    with pytest.raises(cumulus.Unauthenticated, match="a certificate for other names"):
        cumulus.connect(address.replace("127.0.0.1", "localhost"), tls_ca=str(files / "ca.pem"))
    with pytest.raises(cumulus.InvalidArgument, match="tls_ca: .* has no certificate in PEM"):
        cumulus.connect(address, tls_ca=str(files / "ca.key"))
    assert time.monotonic() - begin < 5  # of connect_timeout's 10


def test_silence_says_why():
    with pytest.raises(cumulus.Unavailable, match="within 0.3 s .*No such file.*; start cumulusd"):
        cumulus.connect("unix:/nonexistent/socket", connect_timeout=0.3)


def test_a_server_with_tls_is_guessed(address):
    with pytest.raises(cumulus.Unavailable, match="if it speaks TLS, name the authority"):
        cumulus.connect(address, connect_timeout=0.3)


@pytest.mark.parametrize("wrong", ["localhost", "localhost:", "localhost:0", "localhost:99999", "[::1]", "http://localhost"])
def test_an_address_has_a_port(wrong):
    with pytest.raises(cumulus.InvalidArgument, match="HOST:PORT with a port of 1 to 65535") as raised:
        cumulus.connect(wrong)
    assert raised.value.field == "server"


def test_environment_and_configuration_file(address, files, tmp_path, monkeypatch):
    monkeypatch.setenv("CUMULUS_SERVER", address)
    monkeypatch.setenv("CUMULUS_TLS_CA", str(files / "ca.pem"))
    monkeypatch.setenv("CUMULUS_TOKEN_FILE", str(files / "alice"))
    with cumulus.connect() as c:
        assert c.address == address
    for name in ("SERVER", "TLS_CA", "TOKEN_FILE"):
        monkeypatch.delenv(f"CUMULUS_{name}")
    folder = tmp_path / "cumulus"
    folder.mkdir()
    shutil.copy(files / "ca.pem", folder)
    (folder / "client.conf").write_text(f"server = {address}\ntls_ca=ca.pem # here\n\ntoken_file = {files / 'alice'}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with cumulus.connect() as c:
        assert c.address == address
    (folder / "client.conf").write_text("# nothing\nserver\n")
    with pytest.raises(cumulus.InvalidArgument, match="client.conf:2: 'server' is no setting"):
        cumulus.connect()


def test_a_backend_goes_before_the_server_of_the_environment(monkeypatch):
    monkeypatch.setenv("CUMULUS_SERVER", "127.0.0.1:1")  # where nobody listens
    with cumulus.connect(backend="cpu") as c:
        assert c.address.startswith("unix:") and c.capabilities.devices[0].backend == "cpu"
    with pytest.raises(cumulus.InvalidArgument, match="127.0.0.1:1 has its own"):
        cumulus.connect("127.0.0.1:1", backend="cpu")


def test_what_does_not_go_together_is_refused(files):
    def secure(target="render.example.com:1", **names):
        return credentials.secure(target, credentials.Credentials(**names))

    token, ca = str(files / "alice"), str(files / "ca.pem")
    for target in ("render.example.com:1", "127.example.com:1", "10.127.0.1:1", "127.0.0.1.example.com:1"):
        with pytest.raises(cumulus.InvalidArgument, match="unencrypted"):
            secure(target, token_file=token)
    with pytest.raises(cumulus.InvalidArgument, match="tls_key is missing"):
        secure(tls_ca=ca, tls_cert=ca)
    with pytest.raises(cumulus.InvalidArgument, match="tls_ca is missing"):
        secure(tls_cert=ca, tls_key=ca)
    with pytest.raises(cumulus.InvalidArgument, match="cannot read"):
        secure(tls_ca=str(files / "none"))
    with pytest.raises(cumulus.InvalidArgument, match="does not hold one token"):
        secure(tls_ca=ca, token_file=ca)
    assert secure("127.0.0.1:1", token_file=token).authorization.startswith("Bearer cumulus_")
    assert secure("unix:/run/x", token_file=token, tls_ca=ca) == credentials.ChannelSecurity()
