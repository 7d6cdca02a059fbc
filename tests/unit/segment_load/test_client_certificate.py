"""A client certificate proves who asks, its key beside it or in the same file: to admin APIs and to brokers."""

from __future__ import annotations

import contextlib
import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pulsar
import pytest

from dev.pki import Authority
from segment_load.broker_access import BrokerAccess, BrokerSilent
from segment_load.record_sink import RecordTopic

Proof = tuple[str, str]
_ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\n["b:1"]'


class TlsServer:
    """Takes nobody without a certificate of its authority, and keeps who has come."""

    def __init__(self, authority: Authority, name: str = "localhost") -> None:
        pair = authority.server(name, f"DNS:{name}")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        context.load_verify_locations(authority.pair.certificate)
        context.verify_mode = ssl.CERT_REQUIRED
        self.callers: queue.Queue[Any] = queue.Queue()
        self._socket = context.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True)
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except ssl.SSLError:
                continue
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                self.callers.put(connection.getpeercert())
                if connection.recv(4096).startswith(b"GET"):
                    connection.sendall(_ANSWER)

    def caller(self) -> str:
        ((field,), *_) = self.callers.get(timeout=30)["subject"]
        return str(field[1])

    def close(self) -> None:
        # A close alone leaves the thread in its accept.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority(tmp_path / "pki")
    made.create()
    return made


@pytest.fixture
def server(authority: Authority) -> Iterator[TlsServer]:
    made = TlsServer(authority)
    yield made
    made.close()


def _apart(authority: Authority, folder: Path) -> Proof:
    pair = authority.client("pipeline", "/CN=pipeline")
    return str(pair.certificate), str(pair.key)


def _together(authority: Authority, folder: Path) -> Proof:
    pair = authority.client("pipeline", "/CN=pipeline")
    file = folder / "both.pem"
    file.write_text(pair.certificate.read_text() + pair.key.read_text())
    return str(file), ""


@pytest.mark.parametrize("form", [_apart, _together])
def test_admin_calls_and_clients_prove_themselves(
    authority: Authority, server: TlsServer, tmp_path: Path, form: Callable[[Authority, Path], Proof]
) -> None:
    certificate, key = form(authority, tmp_path)
    ca_file = str(authority.pair.certificate)
    access = BrokerAccess(
        f"https://localhost:{server.port}", ca_file=ca_file, certificate_file=certificate, key_file=key
    )
    assert access.brokers() == ("b:1",)
    assert server.caller() == "pipeline"

    assert _is_reached(
        RecordTopic(
            "persistent://t/n/records",
            f"pulsar+ssl://localhost:{server.port}",
            ca_file=ca_file,
            certificate_file=certificate,
            key_file=key,
        ),
        server,
    )


def test_a_certificate_of_another_host_is_taken_only_where_asked_for(authority: Authority, tmp_path: Path) -> None:
    certificate, key = _apart(authority, tmp_path)
    ca_file = str(authority.pair.certificate)
    with contextlib.closing(TlsServer(authority, "broker.elsewhere")) as server:
        access = BrokerAccess(f"https://localhost:{server.port}", "", ca_file, certificate, key, verify_hostname=False)
        assert BrokerAccess.from_options(access.options()) == access
        assert access.brokers() == ("b:1",)
        assert server.caller() == "pipeline"
        with pytest.raises(BrokerSilent, match="its certificate is not accepted"):
            replace(access, verify_hostname=True).brokers()
        url = f"pulsar+ssl://localhost:{server.port}"
        topic = RecordTopic("persistent://t/n/records", url, "", ca_file, certificate, key, verify_hostname=False)
        assert _is_reached(topic, server)
    # Whose name is not looked at must still be vouched for.
    stranger = Authority(tmp_path / "stranger")
    stranger.create()
    certificate, key = _apart(stranger, tmp_path)
    with (
        contextlib.closing(TlsServer(stranger)) as server,
        pytest.raises(BrokerSilent, match="its certificate is not accepted"),
    ):
        replace(
            access, admin_url=f"https://localhost:{server.port}", certificate_file=certificate, key_file=key
        ).brokers()


def test_an_answer_that_is_neither_yes_nor_no_is_refused() -> None:
    with pytest.raises(ValueError, match="verifyHostname is neither true nor false: 'maybe'"):
        BrokerAccess.from_options({"adminUrl": "https://b:1", "verifyHostname": "maybe"})


def _is_reached(topic: RecordTopic, server: TlsServer) -> bool:
    client = topic.client()

    def connect() -> None:
        # The server is no broker: it is enough that it has seen the certificate.
        with contextlib.suppress(pulsar.PulsarException):
            client.create_producer(topic.name)

    thread = threading.Thread(target=connect)
    thread.start()
    try:
        return server.caller() == "pipeline"
    finally:
        client.close()
        thread.join(60)
        assert not thread.is_alive()


def test_a_key_without_its_certificate_is_refused() -> None:
    with pytest.raises(ValueError, match="keyFile is given without certificateFile"):
        BrokerAccess.from_options({"adminUrl": "https://b:1", "keyFile": "/key.pem"})
