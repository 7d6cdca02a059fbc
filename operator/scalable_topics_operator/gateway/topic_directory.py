"""From a topic's name in a URL to the ScalableTopic that counts."""

from __future__ import annotations

from scalable_topics.layout import LayoutError, TopicName, validate_scalable_name
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey, connection_text
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.topic_work import BY_NAME
from scalable_topics_operator.gateway.refusal import Refusal


class Unfound(Refusal):
    """Which topic is meant cannot be told; the reason tells of topics there are or are not."""


class TopicDirectory:
    """Finds objects by the names of their topics.

    Args:
        cache: the objects, with index `BY_NAME`.
    """

    def __init__(self, cache: ObjectCache) -> None:
        self._cache = cache

    def body(self, key: ObjectKey) -> Body | None:
        """An object as it was last seen."""
        return self._cache.get(key)

    def find(self, topic: TopicName, connection: str | None) -> ObjectKey:
        """The object of a topic.

        Of several that declare it the one that has a layout counts, else the oldest, which will own it (R1).

        Args:
            topic: its name.
            connection: `namespace/name` of its connection, where several clusters have a topic of this name.

        Raises:
            Refusal: 400 for a bad name or connection.
            Unfound: 400 where the connection must be said; 404 if there is none.
        """
        try:
            validate_scalable_name(topic)
        except LayoutError as error:
            raise Refusal(400, str(error)) from None
        found = self._cache.find(BY_NAME, str(topic))
        if connection is not None:
            if connection.count("/") != 1:
                raise Refusal(400, "say which connection as ?connection=namespace/name")
            found = [(key, body) for key, body in found if connection_text(body) == connection]
        if not found:
            where = f" of connection {connection}" if connection is not None else ""
            raise Unfound(404, f"no ScalableTopic{where} declares {topic}; apply one, or check the name")
        owners = [(key, body) for key, body in found if (body.get("status") or {}).get("layout")]
        if len({connection_text(body) for _, body in owners}) > 1:
            raise Unfound(400, f"several clusters have {topic}; say which with ?connection=namespace/name")
        return min(owners or found, key=lambda one: _age(one[1]))[0]


def _age(body: Body) -> tuple[str, str]:
    metadata = body["metadata"]
    return metadata.get("creationTimestamp", ""), metadata["uid"]
