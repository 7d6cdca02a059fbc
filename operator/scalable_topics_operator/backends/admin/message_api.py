"""Calls about single messages: publish one, read the latest, read an entry by its position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scalable_topics_operator.backends.admin.call import Answer, Call
from scalable_topics_operator.backends.admin.http import AdminHttp
from scalable_topics_operator.backends.admin.paths import lookup_path, produce_path, topic_path
from scalable_topics_operator.backends.admin.reasons import About, plain
from scalable_topics_operator.operations.errors import BackendUnavailable, TopicEmpty, TopicMissing

_PRODUCER_NAME = "scalable-topics-operator"


@dataclass(frozen=True, slots=True)
class EntryHead:
    """What the broker tells of an entry without its payload.

    Args:
        producer: name of the producer.
        sequence_id: of its first message (measured: a batch carries the id of its first).
        messages: messages in it.
    """

    producer: str
    sequence_id: int
    messages: int


class MessageApi:
    """Calls about messages of one topic, named by its full `persistent://` name."""

    def __init__(self, http: AdminHttp) -> None:
        self._http = http

    async def publish(self, topic: str, text: str, schema_version: int) -> None:
        """Append a text message to an existing topic.

        A broker that served the topic before an unload would take the message and never answer (measured on 4.2:
        nobody tells its REST producer that the topic left), so the one that serves it now is asked. Should the topic
        leave in between, the version spares that broker a thread: without one it adds the schema first, and waits
        for that in one of its few web threads for ever (measured). Behind a proxy that sends calls to any broker, the
        one to ask is looked up once a call was not answered.

        Args:
            topic: full name.
            text: the message.
            schema_version: of the topic's text schema, which must be there.
        """
        call = publishing_call(topic, text, schema_version)
        problem = (await self._http.send(call)).read(call.what, _publish_problem)
        if problem:
            raise BackendUnavailable(f"{call.what}: {plain(problem)}")

    async def expect_publishing(self, topic: str) -> None:
        """Find the broker that serves the topic, for a `publish` that follows at once."""
        await self._http.find_owner(publishing_call(topic, "", 0))

    async def latest(self, topic: str) -> str | None:
        """The text of the latest message; None if there is none or no topic."""
        query = {"initialPosition": "latest", "messagePosition": "1"}
        try:
            answer = await self._get("examine-message", topic, "examinemessage", query=query)
        except (TopicMissing, TopicEmpty):
            return None
        return answer.text or None

    async def entry(self, topic: str, ledger_id: int, entry_id: int) -> EntryHead:
        """What an entry says of itself."""
        answer = await self._get("get-entry", topic, "ledger", str(ledger_id), "entry", str(entry_id))
        headers = answer.message_headers
        try:
            return EntryHead(
                producer=headers.get("producer-name", ""),
                sequence_id=int(headers.get("sequence-id", -1)),
                messages=int(headers.get("num-batch-message", 1)),
            )
        except ValueError:
            raise BackendUnavailable(f"get-entry {topic}: the answer is not as brokers give it") from None

    async def _get(self, operation: str, topic: str, *rest: str, query: dict[str, str] | None = None) -> Answer:
        call = Call(
            operation=operation,
            method="GET",
            path=topic_path(topic, *rest),
            target=topic,
            about=About.TOPIC,
            query=query or {},
            right="tenant admin (reading messages)",
        )
        return await self._http.send(call)


def _publish_problem(found: Any) -> str:
    results = found.get("messagePublishResults") if found else None
    return str(results[0].get("errorMsg") or "") if results else "the answer names no message"


def publishing_call(topic: str, text: str, schema_version: int) -> Call:
    """The call that appends a message; see `MessageApi.publish`."""
    return Call(
        operation="publish",
        method="POST",
        path=produce_path(topic),
        target=topic,
        about=About.TOPIC,
        body={"producerName": _PRODUCER_NAME, "schemaVersion": schema_version, "messages": [{"payload": text}]},
        right="produce on the topic",
        owner_path=topic_path(topic, "lastMessageId"),
        lookup_path=lookup_path(topic),
    )
