"""Follows the topic of load records as a table, in a thread of its own (R34, R35)."""

from __future__ import annotations

import logging
import os
import random
import ssl
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pulsar

from scalable_topics_operator.backends.admin.credentials import Basic, Credentials, Token
from scalable_topics_operator.load.back_off import BackOff
from scalable_topics_operator.load.private_file import write_private
from scalable_topics_operator.load.record_table import RecordTable
from scalable_topics_operator.load.sample import LoadSample

logger = logging.getLogger(__name__)

_CALL_SECONDS = 10
_WAIT_MILLISECONDS = 500
_QUEUE = 5_000
_FIRST_PAUSE_SECONDS, _LAST_PAUSE_SECONDS = 1.0, 30.0
# Something is missing for so many pulses in a row: all is read anew.
_BROKEN_PULSES = 3


class _TableBroken(Exception):
    """Records are missing and do not come."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What a follower has.

    Args:
        sample: of the last pulse, by this machine's clock; None while there is none.
        came_at_seconds: monotonic time when it came.
        problem: why there is no newer one; empty if nothing is known to be wrong.
        took_seconds: how long the pipeline's batch took that the sample is of; None while there is none.
    """

    sample: LoadSample | None = None
    came_at_seconds: float = 0.0
    problem: str = "no pulse has come yet"
    took_seconds: float | None = None


class RecordFollower:
    """Reads the topic of records from its beginning, and everything that is written to it from then on.

    A pulse makes a sample only if it came while one was waited for: how old one that was there already is cannot be
    told, as clocks differ.

    Args:
        service_url: of the brokers, pulsar:// or pulsar+ssl://.
        topic: full name of the topic, which must exist: brokers might make one of another kind.
        credentials: asked for whenever a connection is made.
    """

    def __init__(self, service_url: str, topic: str, credentials: Callable[[], Credentials]) -> None:
        self.service_url = service_url
        self.topic = topic
        self._credentials = credentials
        self._followed = Followed()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"records of {topic}", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Have the thread end, which takes a moment; nothing waits for it."""
        self._stop.set()

    def join(self, seconds: float) -> bool:
        """Wait for the thread to end; answers whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def followed(self) -> Followed:
        """What has been read so far."""
        return self._followed

    def _run(self) -> None:
        back_off = BackOff(_FIRST_PAUSE_SECONDS, _LAST_PAUSE_SECONDS)
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                with tempfile.TemporaryDirectory(prefix="records-") as folder:
                    self._follow(Path(folder))
            except (pulsar.PulsarException, _TableBroken, OSError, ValueError) as error:
                self._followed = self._with_problem(f"records in {self.topic} cannot be followed: {error}")
                logger.info("%s", self._followed.problem)
            self._stop.wait(random.uniform(0.5, 1.0) * back_off.after(time.monotonic() - began))

    def _follow(self, folder: Path) -> None:
        client = _client(self.service_url, self._credentials, folder)
        try:
            reader = client.create_reader(
                self.topic, pulsar.MessageId.earliest, is_read_compacted=True, receiver_queue_size=_QUEUE
            )
            table, is_live, broken = RecordTable(), False, 0
            while not self._stop.is_set():
                is_live = is_live or not reader.has_message_available()
                try:
                    message = reader.read_next(_WAIT_MILLISECONDS)
                except pulsar.Timeout:
                    continue
                pulse = table.pulse
                is_whole = self._take(table, message)
                if is_whole and is_live:
                    self._show(table, message)
                if table.pulse is not pulse and is_live:
                    broken = broken + 1 if table.problem else 0
                    if table.problem:
                        self._followed = self._with_problem(table.problem)
                if broken >= _BROKEN_PULSES:
                    raise _TableBroken(table.problem)
        finally:
            client.close()

    def _take(self, table: RecordTable, message: pulsar.Message) -> bool:
        try:
            return table.take(message.partition_key(), message.data())
        except ValueError as error:
            # Not of the pipeline, which takes it away again; the next pulse tells whether anything is missing.
            logger.warning(
                "%s has a message that is no record, under key %r: %s", self.topic, message.partition_key(), error
            )
            return False

    def _show(self, table: RecordTable, message: pulsar.Message) -> None:
        assert table.pulse is not None
        # Both times are the pipeline's: how long the batch took.
        took_ms = max(0, message.publish_timestamp() - table.pulse.at_ms)
        planned_ms = time.time_ns() // 1_000_000 - took_ms
        took_seconds = took_ms / 1000
        sample = table.sample(planned_ms - table.pulse.at_ms)
        self._followed = Followed(sample, time.monotonic() - took_seconds, "", took_seconds)

    def _with_problem(self, problem: str) -> Followed:
        return replace(self._followed, problem=problem)


def _client(service_url: str, source: Callable[[], Credentials], folder: Path) -> pulsar.Client:
    """A client, which reads files of the folder, and asks for a token, whenever it connects."""
    credentials = source()
    authorization, certificate = credentials.authorization, credentials.certificate
    proof: pulsar.Authentication | None = None
    if isinstance(authorization, Basic):
        proof = pulsar.AuthenticationBasic(authorization.username, authorization.password)
    elif authorization is not None:
        proof = pulsar.AuthenticationToken(lambda: _token(source()))
    elif certificate is not None:
        proof = pulsar.AuthenticationTLS(
            _written(folder / "tls.crt", certificate.chain_pem), _written(folder / "tls.key", certificate.key_pem)
        )
    ca_pem = credentials.trusted_ca_pem
    return pulsar.Client(
        service_url,
        authentication=proof,
        operation_timeout_seconds=_CALL_SECONDS,
        tls_trust_certs_file_path=_written(folder / "ca.crt", ca_pem)
        if ca_pem is not None
        else ssl.get_default_verify_paths().cafile,
        tls_validate_hostname=credentials.verify_hostname,
        # What goes wrong is raised, and told with the topic's name.
        logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull),
    )


def _token(credentials: Credentials) -> str:
    return credentials.authorization.value if isinstance(credentials.authorization, Token) else ""


def _written(file: Path, content: bytes) -> str:
    write_private(file, content)
    return str(file)
