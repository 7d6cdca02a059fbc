"""Load records to a compacted Pulsar topic, and back from it (R34, R35)."""

from __future__ import annotations

import itertools
import ssl
import threading
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pulsar
from pyspark.sql import DataFrame, Row, SparkSession

from scalable_topics_operator.autoscale.load import Rates
from scalable_topics_operator.load.records import (
    PULSE,
    Pulse,
    SegmentRecord,
    decode_record,
    encode_pulse,
    encode_record,
)
from segment_load.broker_access import BrokerAccess
from segment_load.change_filter import STATE_SCHEMA
from segment_load.frames import local_frame

_SEND_SECONDS = 30
_COMPACTION_BYTES = 10 * 1024 * 1024
_READ_MILLISECONDS = 10_000
_QUEUE = 1000
_CLUSTERS = "allowedClusters"
_MARK = "segment-load-writer"


class SinkFailed(Exception):
    """Records could not be written; the batch has to be done again."""


@dataclass(frozen=True, slots=True)
class RecordTopic:
    """Where records are kept.

    Args:
        name: full name, `persistent://TENANT/NAMESPACE/TOPIC`; it must not be partitioned.
        service_url: of the brokers, pulsar:// or pulsar+ssl://.
        token_file: file with the token; empty for none.
        ca_file: certificates that brokers are checked against.
        certificate_file: client certificate, PEM, where there is no token.
        key_file: its private key, PEM; empty where the certificate's file holds it, too.
        verify_hostname: False accepts a certificate of another name; the chain is still checked.
    """

    name: str
    service_url: str
    token_file: str = ""
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    verify_hostname: bool = True

    @property
    def namespace(self) -> str:
        """Its Pulsar tenant and namespace."""
        return "/".join(self.name.partition("://")[2].split("/")[:2])

    @property
    def path(self) -> str:
        """Its path in the admin API."""
        domain, _, rest = self.name.partition("://")
        tenant, namespace, local = rest.split("/", 2)
        return f"/admin/v2/{domain}/{tenant}/{namespace}/{quote(local, safe='')}"

    def client(self) -> pulsar.Client:
        """A client of its own, to be closed. It reads the token's file whenever it has to prove itself."""
        proof: pulsar.Authentication | None = None
        if self.token_file:
            proof = pulsar.AuthenticationToken(lambda: Path(self.token_file).read_text(encoding="utf-8").strip())
        elif self.certificate_file:
            proof = pulsar.AuthenticationTLS(self.certificate_file, self.key_file or self.certificate_file)
        return pulsar.Client(
            self.service_url,
            authentication=proof,
            operation_timeout_seconds=_SEND_SECONDS,
            tls_trust_certs_file_path=self.ca_file or ssl.get_default_verify_paths().cafile or None,
            tls_validate_hostname=self.verify_hostname,
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        )


def prepare(topic: RecordTopic, access: BrokerAccess) -> None:
    """Make the topic, with tenant and namespace, and have it kept for ever and compacted. May be repeated.

    In a namespace made so nobody but superusers may do anything. Raises BrokerSilent.
    """
    tenant = topic.namespace.partition("/")[0]
    found = access.send("GET", f"/admin/v2/tenants/{tenant}", allow=frozenset({404}))
    if not isinstance(found, dict) or _CLUSTERS not in found:
        clusters = access.send("GET", "/admin/v2/clusters")
        access.send("PUT", f"/admin/v2/tenants/{tenant}", {_CLUSTERS: clusters}, allow=frozenset({409}))
    access.send("PUT", f"/admin/v2/namespaces/{topic.namespace}", allow=frozenset({409}))
    access.send("PUT", topic.path, allow=frozenset({409}))
    kept = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    access.send("POST", f"{topic.path}/retention", kept)
    access.send("POST", f"{topic.path}/compactionThreshold", _COMPACTION_BYTES)
    never = {"inactiveTopicDeleteMode": "delete_when_no_subscriptions", "maxInactiveDurationSeconds": 1}
    access.send("POST", f"{topic.path}/inactiveTopicPolicies", {**never, "deleteWhileInactive": False})


def compact(topic: RecordTopic, access: BrokerAccess) -> None:
    """Have the topic compacted now; one compaction at a time is enough. Raises BrokerSilent."""
    access.send("PUT", f"{topic.path}/compaction", allow=frozenset({409}))


def write_strays(state: DataFrame, topic: RecordTopic, at_ms: int) -> int:
    """Take away the records that nothing is known of, and those of a time to come; answers how many. Raises SinkFailed.

    The latter are of a clock that has gone back, and would be taken for newer than what is told now.
    """
    records = _table(topic)
    future = {segment for segment, record in records.items() if record.sampled_at_ms > at_ms}
    known = local_frame(state.sparkSession, [_row(*one, at_ms) for one in records.items()], STATE_SCHEMA)
    strays = known.join(state.where("not gone"), "segment", "left_anti").select("segment").collect()
    gone = future.union(row["segment"] for row in strays)
    _send(topic, ((segment, None) for segment in gone))
    return len(gone)


def write(news: DataFrame, topic: RecordTopic, at_ms: int) -> None:
    """Write the news of a batch: a record each, or that there is none any more. Raises SinkFailed from the executors.

    Args:
        news: rows of `STATE_SCHEMA`.
        topic: where to.
        at_ms: of the batch.
    """

    def send_all(rows: Iterator[Row]) -> None:
        _send(topic, ((row["segment"], None if row["gone"] else encode_record(record_of(row, at_ms))) for row in rows))

    news.foreachPartition(send_all)


def read_known(spark: SparkSession, topic: RecordTopic, at_ms: int) -> DataFrame:
    """What is known from the records alone, as `STATE_SCHEMA`: each segment counts as just seen (R35).

    Args:
        spark: the session.
        topic: where from.
        at_ms: of the batch that begins with it.
    """
    rows = [_row(segment, record, at_ms) for segment, record in _table(topic).items()]
    return local_frame(spark, rows, STATE_SCHEMA)


def record_of(row: Row, at_ms: int) -> SegmentRecord:
    """The record of a row of `STATE_SCHEMA`."""
    if row["rates"] is None:
        return SegmentRecord(row["broker"], row["seen_ms"])
    return SegmentRecord(
        broker=row["broker"],
        sampled_at_ms=at_ms,
        rates=Rates(*row["rates"]),
        backlog=row["backlog"] or {},
        changed_at_ms=row["changed_ms"],
        cold=None if row["hot"] else (row["last_hot_ms"], Rates(*row["merge"])),
    )


def _row(segment: str, record: SegmentRecord, at_ms: int) -> tuple[Any, ...]:
    # Without rates it is told anew once it counts; its message count is one that any answer goes on from.
    told = (None,) * 6
    return (segment, record.broker, at_ms, at_ms, None, 0, *told, False, False, False, None, None)


def _table(topic: RecordTopic) -> dict[str, SegmentRecord]:
    found: dict[str, SegmentRecord] = {}
    client = topic.client()
    try:
        reader = client.create_reader(topic.name, pulsar.MessageId.earliest, is_read_compacted=True)
        while reader.has_message_available():
            message = reader.read_next(_READ_MILLISECONDS)
            key, data = message.partition_key(), message.data()
            if not key or key == PULSE:
                continue
            record = _decoded(data) if data else None
            if record is None:
                found.pop(key, None)
            elif key not in found or record.sampled_at_ms >= found[key].sampled_at_ms:
                found[key] = record
    finally:
        client.close()
    return found


def _decoded(data: bytes) -> SegmentRecord:
    try:
        return decode_record(data)
    except ValueError:
        # Somebody else's, or of another version: known to be there, so that it is told anew or taken away.
        return SegmentRecord("", 0)


def _send(topic: RecordTopic, messages: Iterable[tuple[str, bytes | None]]) -> None:
    rows = iter(messages)
    first = next(rows, None)
    if first is None:
        return
    failures: list[str] = []
    lock = threading.Lock()

    def done(result: pulsar.Result, _: Any) -> None:
        if result != pulsar.Result.Ok:
            with lock:
                failures.append(str(result))

    client = topic.client()
    try:
        producer = client.create_producer(
            topic.name,
            block_if_queue_full=True,
            max_pending_messages=_QUEUE,
            batching_enabled=True,
            send_timeout_millis=_SEND_SECONDS * 1000,
        )
        for key, payload in itertools.chain([first], rows):
            # Compaction drops a key whose last message is empty.
            producer.send_async(payload or b"", done, partition_key=key)
        producer.flush()
    except pulsar.PulsarException as error:
        raise SinkFailed(f"{topic.name}: {error}") from None
    finally:
        client.close()
    if failures:
        raise SinkFailed(f"{topic.name}: {len(failures)} records were not stored, the first for {failures[0]}")


class PulseWriter:
    """Writes pulses, and sees whether what was written before is still there.

    Args:
        topic: where to.
        access: the brokers.
    """

    def __init__(self, topic: RecordTopic, access: BrokerAccess) -> None:
        self._topic = topic
        self._access = access
        self._client: pulsar.Client | None = None
        self._producer: pulsar.Producer | None = None
        self._last: pulsar.MessageId | None = None
        self._mark = ""
        self._messages = 0

    def mark(self) -> None:
        """Mark the topic as it is now, before all that is known is told to it. Raises BrokerSilent."""
        self._mark, self._last = uuid.uuid4().hex, None
        self._access.send("PUT", f"{self._topic.path}/properties", {_MARK: self._mark})
        self._messages = self._counted() or 0

    def is_last(self) -> bool:
        """Whether the topic is as it was marked, its last message the last pulse of this writer, and all else ours.

        It is not if the topic was deleted, perhaps between the records of a batch and its pulse, which then made it
        anew, or if somebody else has written to it, perhaps while a batch was written: all is to be told anew then.
        Raises BrokerSilent.
        """
        if self._last is None:
            return False
        marks = self._access.send("GET", f"{self._topic.path}/properties", allow=frozenset({404}))
        if not isinstance(marks, dict) or marks.get(_MARK) != self._mark:
            return False
        found = self._access.send("GET", f"{self._topic.path}/lastMessageId", allow=frozenset({404}))
        place = (found.get("ledgerId"), found.get("entryId")) if isinstance(found, dict) else None
        if place != (self._last.ledger_id(), self._last.entry_id()):
            return False
        counted = self._counted()
        if counted is None or counted > self._messages:
            return False
        # Less than was sent: a broker has loaded the topic since, and counts from there.
        self._messages = counted
        return True

    def write(self, pulse: Pulse, records: int) -> None:
        """Write that a batch is done, after all of its records. Raises SinkFailed.

        Args:
            pulse: of the batch.
            records: how many messages were written since the topic was marked or since the pulse before.
        """
        try:
            if self._producer is None:
                self._producer = self._opened().create_producer(
                    self._topic.name, batching_enabled=False, send_timeout_millis=_SEND_SECONDS * 1000
                )
            self._last = self._producer.send(encode_pulse(pulse), partition_key=PULSE)
            self._messages += records + 1
        except pulsar.PulsarException as error:
            self.close()
            raise SinkFailed(f"{self._topic.name}: {error}") from None

    def close(self) -> None:
        """Let go of the brokers; the next pulse connects anew."""
        client, self._client, self._producer, self._last = self._client, None, None, None
        if client is not None:
            client.close()

    def _counted(self) -> int | None:
        """How many messages the topic has taken since a broker loaded it; None if it is not there."""
        found = self._access.send("GET", f"{self._topic.path}/stats", allow=frozenset({404}))
        count = found.get("msgInCounter") if isinstance(found, dict) else None
        return count if isinstance(count, int) else None

    def _opened(self) -> pulsar.Client:
        if self._client is None:
            self._client = self._topic.client()
        return self._client
