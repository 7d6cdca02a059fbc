"""Settings of clients, producers and consumers; each is checked when it is made."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import pulsar

from scalable_topics.layout import CLIENT_PROPERTY, PROPERTY_PREFIX, READER_PREFIX, HashRange

_SCHEMES = ("pulsar", "pulsar+ssl")
MOST_HANDOVER_SECONDS = 30
"""Longer than that, a leader does not wait for a segment to be given back (docs/sessions.md)."""
_VERSION = version("scalable-topics")


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How Pulsar is reached; passed through to pulsar-client.

    Args:
        service_url: `pulsar://` or `pulsar+ssl://` address, or several of them as pulsar-client reads them.
        authentication: a `pulsar.Authentication`.
        tls_trust_certs_file_path: CA bundle; None for certifi's.
        tls_allow_insecure_connection: accept any certificate.
        tls_validate_hostname: check the host name of the certificate.
        listener_name: advertised listener to use.
        operation_timeout_seconds: of attaching, closing and looking up; whole seconds, 1 or more.
        connection_timeout_ms: of a TCP connection.
        producer_connections: pulsar-clients for the producers, each with a thread and a connection a broker, 1 or more.
            pulsar-client drops a connection when a sealed segment refuses a send, and sends again whatever else was in
            flight on it; with as many as there are active segments that disturbs no other segment, but sending many
            messages takes half as long again, since the threads compete for the interpreter.
        partitions_refresh_seconds: how often the partitions of an ordinary topic are counted again, above 0.
        log_level: of pulsar-client's own log, which goes to standard output.

    Raises:
        ValueError: a number is out of range, or the address is none.
    """

    service_url: str
    authentication: Any = None
    tls_trust_certs_file_path: str | None = None
    tls_allow_insecure_connection: bool = False
    tls_validate_hostname: bool = True
    listener_name: str | None = None
    operation_timeout_seconds: int = 30
    connection_timeout_ms: int = 10_000
    producer_connections: int = 1
    partitions_refresh_seconds: float = 60.0
    log_level: Any = pulsar.LoggerLevel.Error

    def __post_init__(self) -> None:
        _at_least(self, 1, "operation_timeout_seconds", "connection_timeout_ms", "producer_connections")
        if not self.partitions_refresh_seconds > 0:
            raise ValueError(f"partitions_refresh_seconds is {self.partitions_refresh_seconds}; it must be above 0")
        scheme, separator, hosts = self.service_url.partition("://")
        if scheme not in _SCHEMES or not separator or not hosts:
            raise ValueError("service_url must begin with pulsar:// or pulsar+ssl:// and name a host")

    def connect(self) -> pulsar.Client:
        """A new pulsar-client, with connections of its own. Does not block: it connects when it is used."""
        return pulsar.Client(
            self.service_url,
            authentication=self.authentication,
            operation_timeout_seconds=self.operation_timeout_seconds,
            connection_timeout_ms=self.connection_timeout_ms,
            tls_trust_certs_file_path=self.tls_trust_certs_file_path,
            tls_allow_insecure_connection=self.tls_allow_insecure_connection,
            tls_validate_hostname=self.tls_validate_hostname,
            listener_name=self.listener_name,
            logger=pulsar.ConsoleLogger(self.log_level),
        )


def create_reader(client: pulsar.Client, topic: str, start: Any, **settings: Any) -> Any:
    """Attach a Reader that is marked as one of this library. Blocks.

    Args:
        client: its connection.
        topic: full name of the topic.
        start: position to start at.
        settings: others of pulsar-client's Readers.
    """
    # pulsar-client makes up the rest of the subscription's name, and the same one in every process that was forked from
    # one in which it had been loaded (as by a web server that preloads its application): brokers let in one of them.
    prefix = f"{READER_PREFIX}-reader-{uuid.uuid4().hex[:16]}"
    return client.create_reader(topic, start, subscription_role_prefix=prefix, **settings)


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """How a producer sends.

    Args:
        batching_enabled: put messages that follow each other closely into one entry.
        batching_max_messages: messages of a batch, 1 or more.
        batching_max_bytes: bytes of a batch, 1 or more.
        batching_max_publish_delay_ms: how long a message waits for company, 1 or more.
        compression_type: a `pulsar.CompressionType`.
        max_pending_messages: sends without an outcome, held ones included, 1 or more; further ones wait.
        max_pending_bytes: payload, keys and properties of the same, 1 or more.
        send_timeout_seconds: after this long without an outcome the application is told so; above 0.
        properties: of the producer, shown in the broker's statistics beside the mark of this library.
        encryption_key: name of the public key that payloads are encrypted with. Every message is an entry of its own
            then: a batch that nobody else can read could not be divided where it is passed on to other segments.
        crypto_key_reader: a `pulsar.CryptoKeyReader`.

    Raises:
        ValueError: a number is out of range, or a property begins with `scalabletopics.io/`.
    """

    batching_enabled: bool = True
    batching_max_messages: int = 1000
    batching_max_bytes: int = 128 * 1024
    batching_max_publish_delay_ms: int = 5
    compression_type: Any = pulsar.CompressionType.NONE
    max_pending_messages: int = 20_000
    max_pending_bytes: int = 64 * 1024 * 1024
    send_timeout_seconds: float = 120.0
    properties: Mapping[str, str] = field(default_factory=dict)
    encryption_key: str | None = None
    crypto_key_reader: Any = None

    def __post_init__(self) -> None:
        _at_least(
            self,
            1,
            "batching_max_messages",
            "batching_max_bytes",
            "batching_max_publish_delay_ms",
            "max_pending_messages",
            "max_pending_bytes",
        )
        if not self.send_timeout_seconds > 0:
            raise ValueError(f"send_timeout_seconds is {self.send_timeout_seconds}; it must be above 0")
        _check_properties(self.properties)

    @property
    def batches(self) -> bool:
        """Whether messages share entries (pip-486: never where they are encrypted)."""
        return self.batching_enabled and self.encryption_key is None

    def create(self, client: pulsar.Client, topic: str, name: str, schema: Any) -> pulsar.Producer:
        """Attach a producer to a segment's topic. Blocks.

        The library keeps the bounds and the time itself, so pulsar-client gets none: with its own send timeout it would
        give up messages whose outcome is unknown, and it re-sends what was in flight when a connection returns.
        """
        return client.create_producer(
            topic,
            producer_name=name,
            schema=schema,
            send_timeout_millis=0,
            max_pending_messages=0,
            compression_type=self.compression_type,
            batching_enabled=self.batches,
            batching_max_messages=self.batching_max_messages,
            batching_max_allowed_size_in_bytes=self.batching_max_bytes,
            batching_max_publish_delay_ms=self.batching_max_publish_delay_ms,
            properties=_marked(self.properties),
            encryption_key=self.encryption_key,
            crypto_key_reader=self.crypto_key_reader,
        )


@dataclass(frozen=True, slots=True)
class DeadLetterPolicy:
    """What becomes of messages that are delivered again and again.

    Args:
        max_redeliver_count: deliveries after the first before a message is given up, 1 or more.
        topic: full name of an ordinary topic to put it on; None is `{topic}-{subscription}-DLQ` beside the scalable
            topic, whatever segment the message is from (R24).
        initial_subscription: subscription made with that topic, so that nothing on it is lost; None makes none.

    Raises:
        ValueError: the number is out of range.
    """

    max_redeliver_count: int
    topic: str | None = None
    initial_subscription: str | None = None

    def __post_init__(self) -> None:
        _at_least(self, 1, "max_redeliver_count")


@dataclass(frozen=True, slots=True)
class QueueConsumerOptions:
    """How a queue consumer receives.

    Args:
        initial_position: where a new subscription starts, a `pulsar.InitialPosition`; an existing one goes on where it
            was, and segments that appear later are always read from their beginning.
        receiver_queue_size: messages that wait here for the application, over all segments, 1 or more; every segment
            may have at least one in pulsar-client and one here.
        consumer_name: shown in the broker's statistics; None is chosen by the broker.
        negative_ack_redelivery_delay_ms: after this long a negatively acknowledged message comes again, 0 or more.
        unacked_messages_timeout_ms: after this long without acknowledgement a message comes again, 10,000 or more;
            None for never.
        batch_index_ack_enabled: acknowledge within batches, where brokers have it switched on; else a batch comes again
            as a whole until all of it is acknowledged.
        dead_letter_policy: what becomes of messages delivered too often; None delivers them for ever.
        properties: of the consumer, shown in the broker's statistics beside the mark of this library.
        crypto_key_reader: a `pulsar.CryptoKeyReader`.

    Raises:
        ValueError: a number is out of range, or a property begins with `scalabletopics.io/`.
    """

    initial_position: Any = pulsar.InitialPosition.Latest
    receiver_queue_size: int = 1000
    consumer_name: str | None = None
    negative_ack_redelivery_delay_ms: int = 60_000
    unacked_messages_timeout_ms: int | None = None
    batch_index_ack_enabled: bool = True
    dead_letter_policy: DeadLetterPolicy | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    crypto_key_reader: Any = None

    def __post_init__(self) -> None:
        _at_least(self, 1, "receiver_queue_size")
        _at_least(self, 0, "negative_ack_redelivery_delay_ms")
        if self.unacked_messages_timeout_ms is not None:
            _at_least(self, 10_000, "unacked_messages_timeout_ms")
        _check_properties(self.properties)

    def subscribe(
        self,
        client: pulsar.Client,
        topic: str,
        subscription: str,
        *,
        dead_letter_topic: str,
        from_earliest: bool,
        receiver_queue_size: int,
        schema: Any,
        listener: Callable[[Any, pulsar.Message], None],
    ) -> Any:
        """Attach a consumer to a segment's topic. Blocks. The listener is called in a thread of pulsar-client."""
        dead_letters = self.dead_letter_policy
        return client.subscribe(
            topic,
            subscription,
            consumer_type=pulsar.ConsumerType.Shared,
            schema=schema,
            message_listener=listener,
            receiver_queue_size=receiver_queue_size,
            consumer_name=self.consumer_name,
            unacked_messages_timeout_ms=self.unacked_messages_timeout_ms,
            negative_ack_redelivery_delay_ms=self.negative_ack_redelivery_delay_ms,
            properties=_marked(self.properties),
            initial_position=pulsar.InitialPosition.Earliest if from_earliest else pulsar.InitialPosition.Latest,
            crypto_key_reader=self.crypto_key_reader,
            batch_index_ack_enabled=self.batch_index_ack_enabled,
            dead_letter_policy=None
            if dead_letters is None
            else pulsar.ConsumerDeadLetterPolicy(
                dead_letters.max_redeliver_count,
                dead_letter_topic,
                dead_letters.initial_subscription,
            ),
        )


@dataclass(frozen=True, slots=True)
class StreamConsumerOptions:
    """How a stream consumer receives. It has neither an acknowledgement timeout nor negative acknowledgements (R24).

    Args:
        initial_position: where a new subscription starts, a `pulsar.InitialPosition`; an existing one goes on where it
            was, and segments that appear later are always read from their beginning.
        receiver_queue_size: messages that wait here for the application, over all segments, 1 or more; every segment
            may have at least one in pulsar-client and one here.
        consumer_name: unique within the subscription; a consumer that comes later under the same name takes over. None
            makes up one for each consumer object.
        handover_seconds: how long the application may acknowledge what it got of a segment that goes to another
            consumer, from 0 to less than 30, and at most four fifths of what the leader allows (30 s); what it has not
            acknowledged by then is delivered again there.
        assignment_listener: called in the event loop with the ids of all segments that are read, whole or in part,
            whenever they are others than before; it must not block.
        properties: of the consumer, shown in the broker's statistics beside the mark of this library.
        crypto_key_reader: a `pulsar.CryptoKeyReader`.

    Raises:
        ValueError: a number is out of range, the name is empty, or a property begins with `scalabletopics.io/`.
    """

    initial_position: Any = pulsar.InitialPosition.Latest
    receiver_queue_size: int = 1000
    consumer_name: str | None = None
    handover_seconds: float = 5.0
    assignment_listener: Callable[[tuple[int, ...]], None] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    crypto_key_reader: Any = None

    def __post_init__(self) -> None:
        _at_least(self, 1, "receiver_queue_size")
        if self.consumer_name == "":
            raise ValueError("consumer_name is empty; give a name, or None to have one made up")
        if not 0 <= self.handover_seconds < MOST_HANDOVER_SECONDS:
            raise ValueError(
                f"handover_seconds is {self.handover_seconds}; it must be from 0 to less than {MOST_HANDOVER_SECONDS}"
            )
        _check_properties(self.properties)

    def subscribe(
        self,
        client: pulsar.Client,
        topic: str,
        subscription: str,
        *,
        consumer_name: str,
        receiver_queue_size: int,
        schema: Any,
        listener: Callable[[Any, pulsar.Message], None],
        bucket: HashRange | None = None,
        beside_others: bool = False,
        from_latest: bool = False,
    ) -> Any:
        """Attach a consumer to a segment's topic. Blocks. The listener is called in a thread of pulsar-client.

        The leader makes the cursors, where `initial_position` says. Should one be missing, nothing is left out, unless
        it is `from_latest`. Where there is no leader, consumers attach `beside_others`: Failover. One that reads but a
        `bucket` attaches Key_Shared, to exactly this range of the lower halves of hashes.
        """
        kind = pulsar.ConsumerType.Failover if beside_others else pulsar.ConsumerType.Exclusive
        policy = None
        if bucket is not None:
            kind = pulsar.ConsumerType.KeyShared
            policy = pulsar.ConsumerKeySharedPolicy(
                pulsar.KeySharedMode.Sticky, sticky_ranges=[(bucket.start, bucket.end)]
            )
        return client.subscribe(
            topic,
            subscription,
            consumer_type=kind,
            key_shared_policy=policy,
            schema=schema,
            message_listener=listener,
            receiver_queue_size=receiver_queue_size,
            consumer_name=consumer_name,
            properties=_marked(self.properties),
            initial_position=pulsar.InitialPosition.Latest if from_latest else pulsar.InitialPosition.Earliest,
            crypto_key_reader=self.crypto_key_reader,
            batch_index_ack_enabled=True,
        )


def _marked(properties: Mapping[str, str]) -> dict[str, str]:
    return {**properties, CLIENT_PROPERTY: _VERSION}


def _check_properties(properties: Mapping[str, str]) -> None:
    for name in properties:
        if name.startswith(PROPERTY_PREFIX):
            raise ValueError(f"the property {name!r} begins with {PROPERTY_PREFIX}, which is kept for this library")


def _at_least(options: object, least: int, *names: str) -> None:
    for name in names:
        value = getattr(options, name)
        if value < least:
            raise ValueError(f"{name} is {value}; it must be {least} or more")
