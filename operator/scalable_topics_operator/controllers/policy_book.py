"""Which policies apply to which ScalableTopic, and what they come to (pip-483 policy resolution, R3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from scalable_topics_operator.autoscale.policy import EffectivePolicy, Level, resolve
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import POLICIES, TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.parsed_policy import (
    CLUSTER,
    IN_TOPICS_NAMESPACE,
    InvalidKnobs,
    ParsedPolicy,
    Subject,
    inline_level,
    inline_name,
    parse_policy,
    subject_of,
)
from scalable_topics_operator.controllers.policy_shelf import Group, Shelf, make_shelf
from scalable_topics_operator.controllers.topic_work import BY_CONNECTION

_POLICIES_BY_NAMESPACE = "policies-by-namespace"
_TOPICS_BY_NAMESPACE = "topics-by-namespace"


# uid, generation, and the policy or why it cannot be read.
_Entry = tuple[str, int, ParsedPolicy | str]


@dataclass(frozen=True, slots=True)
class _Page:
    """The policies of one namespace.

    Args:
        changes: of the cache, when they were read.
        entries: all of them, by key.
        shelf: those that can be applied.
    """

    changes: int
    entries: Mapping[ObjectKey, _Entry]
    shelf: Shelf


@dataclass(slots=True)
class _Answer:
    """What was found for a topic, and what it depends on.

    Args:
        uid: of the topic.
        generation: of its spec.
        subject: what policies look at.
        shelves: policies of its own and of its connection's namespace.
        inline: the knobs in its own spec, or why they cannot be read.
        group: those that apply.
        effective: what they come to with the topic's own knobs; None if nobody has asked since.
    """

    uid: str
    generation: int
    subject: Subject
    shelves: tuple[Shelf, Shelf]
    inline: Level | str | None
    group: Group
    effective: EffectivePolicy | None = None


class PolicyBook:
    """Looks policies up, and remembers what it found by what that depends on: asking again costs next to nothing.

    Args:
        cache: the objects; with the index `BY_CONNECTION`. Indexes of the book's own are added.
        defaults: the operator's own knobs, below all policies.
    """

    def __init__(self, cache: ObjectCache, defaults: Level | None) -> None:
        self._cache = cache
        self._defaults = (defaults,) if defaults is not None else ()
        self._pages: dict[str, _Page] = {}
        self._answers: dict[ObjectKey, _Answer] = {}
        # Thousands of topics have the same policies: they share one result.
        self._shared: dict[Group, EffectivePolicy] = {}
        cache.add_index(_POLICIES_BY_NAMESPACE, POLICIES, _namespace)
        cache.add_index(_TOPICS_BY_NAMESPACE, TOPICS, _namespace)

    def effective(self, key: ObjectKey, body: Body) -> EffectivePolicy:
        """What applies to a ScalableTopic. Knobs in its own spec that cannot be read are told as the problem."""
        answer = self._answer(key, body)
        if answer.effective is None:
            answer.effective = self._with_inline(answer)
        return answer.effective

    def expected(self, key: ObjectKey, manifest: Body) -> EffectivePolicy:
        """What would apply to a ScalableTopic that is not there yet; nothing of it is remembered."""
        return self._with_inline(self._look_up(key, manifest))

    def applied(self, key: ObjectKey, body: Body) -> Group:
        """The policies that apply to a ScalableTopic, its own spec apart."""
        return self._answer(key, body).group

    def together(self, group: Group) -> EffectivePolicy:
        """What some policies come to."""
        known = self._shared.get(group)
        if known is None:
            known = self._shared[group] = resolve((*self._defaults, *(policy.level for policy in group)))
        return known

    def resolved(self, levels: Sequence[Level]) -> EffectivePolicy:
        """What some levels come to over the operator's own knobs."""
        return resolve((*self._defaults, *levels))

    def policy(self, key: ObjectKey) -> ParsedPolicy | None:
        """A policy by its key; None if there is none. Raises InvalidKnobs if it cannot be read and is ignored."""
        entry = self._page(key.namespace).entries.get(key)
        if entry is None:
            return None
        found = entry[2]
        if isinstance(found, str):
            raise InvalidKnobs(found)
        return found

    def policies_in(self, namespace: str) -> Group:
        """The policies of a namespace that can be applied."""
        return self._page(namespace).shelf.policies

    def wider_than(self, policy: ParsedPolicy) -> Group:
        """The policies of wider scopes that are for all topics that `policy` can be for."""
        return tuple(
            other
            for other in self.policies_in(policy.key.namespace)
            if other.scope == CLUSTER and policy.width > other.width and policy.connection == other.connection
        )

    def candidates(self, policy: ParsedPolicy) -> Sequence[ObjectKey]:
        """The ScalableTopics among which are all that a policy applies to, in no order."""
        if policy.topic is not None:
            key = ObjectKey(TOPICS.plural, policy.key.namespace, policy.topic)
            return (key,) if self._cache.get(key) is not None else ()
        if policy.connection is not None:
            return tuple(self._cache.keys(BY_CONNECTION, str(policy.connection)))
        return tuple(self._cache.keys(_TOPICS_BY_NAMESPACE, policy.key.namespace))

    def topics_of(self, policy: ParsedPolicy) -> list[ObjectKey]:
        """The ScalableTopics that a policy applies to, in no order."""
        return [
            key
            for key in self.candidates(policy)
            if (body := self._cache.get(key)) is not None and policy in self.applied(key, body)
        ]

    def guests_of(self, policy: ParsedPolicy) -> Group:
        """The policies of other namespaces, for topics by label or name, that may lie over one of a wider scope."""
        if policy.scope in IN_TOPICS_NAMESPACE:
            return ()
        topics = self._cache.keys(BY_CONNECTION, str(policy.connection))
        namespaces = {topic.namespace for topic in topics} - {policy.key.namespace}
        return tuple(
            guest
            for namespace in namespaces
            for guest in self.policies_in(namespace)
            if guest.scope in IN_TOPICS_NAMESPACE
        )

    def within(self, policy: ParsedPolicy) -> Iterator[tuple[ObjectKey, EffectivePolicy | None]]:
        """The topics that a policy was for when they were last looked at, with what was answered; None if not asked."""
        for key, answer in list(self._answers.items()):
            if policy.applies_to(answer.subject):
                yield key, answer.effective

    def forget(self, key: ObjectKey) -> None:
        """Drop what is remembered of a topic."""
        self._answers.pop(key, None)

    def _answer(self, key: ObjectKey, body: Body) -> _Answer:
        metadata = body["metadata"]
        answer = self._answers.get(key)
        if (
            answer is None
            or answer.uid != metadata["uid"]
            or answer.generation != metadata["generation"]
            or answer.subject.labels != (metadata.get("labels") or {})
        ):
            answer = self._answers[key] = self._look_up(key, body)
            return answer
        shelves = self._shelves_for(answer.subject)
        if shelves != answer.shelves:
            answer.shelves, group = shelves, _group(answer.subject, shelves)
            if group != answer.group:
                answer.group, answer.effective = group, None
        return answer

    def _look_up(self, key: ObjectKey, body: Body) -> _Answer:
        metadata, subject = body["metadata"], subject_of(body)
        shelves = self._shelves_for(subject)
        uid, generation = metadata.get("uid", ""), metadata.get("generation", 0)
        return _Answer(uid, generation, subject, shelves, _inline(key, body), _group(subject, shelves))

    def _shelves_for(self, subject: Subject) -> tuple[Shelf, Shelf]:
        return self._page(subject.namespace).shelf, self._page(subject.connection.namespace).shelf

    def _with_inline(self, answer: _Answer) -> EffectivePolicy:
        inline, shared = answer.inline, self.together(answer.group)
        if isinstance(inline, str):
            return replace(shared, config=None, problem=inline)
        if inline is None:
            return shared
        return resolve((*self._defaults, *(policy.level for policy in answer.group), inline))

    def _page(self, namespace: str) -> _Page:
        changes = self._cache.changes(POLICIES)
        page = self._pages.get(namespace)
        if page is not None and page.changes == changes:
            return page
        known = page.entries if page is not None else {}
        entries = {
            key: _entry(key, body, known.get(key)) for key, body in self._cache.find(_POLICIES_BY_NAMESPACE, namespace)
        }
        shelf = make_shelf(entry[2] for entry in entries.values() if isinstance(entry[2], ParsedPolicy))
        if page is not None and shelf.policies == page.shelf.policies:
            # Only statuses have changed: answers that depend on these policies stay good.
            shelf = page.shelf
        else:
            self._shared.clear()
        page = self._pages[namespace] = _Page(changes, entries, shelf)
        return page


def _inline(key: ObjectKey, body: Body) -> Level | str | None:
    try:
        return inline_level(key, body)
    except InvalidKnobs as error:
        return f"{inline_name(key)}: {error}"


def _namespace(body: Body) -> str:
    return str(body["metadata"]["namespace"])


def _entry(key: ObjectKey, body: Body, known: _Entry | None) -> _Entry:
    uid, generation = body["metadata"]["uid"], body["metadata"]["generation"]
    if known is not None and known[:2] == (uid, generation):
        return known
    try:
        return uid, generation, parse_policy(key, body)
    except InvalidKnobs as error:
        return uid, generation, str(error)


def _group(subject: Subject, shelves: tuple[Shelf, Shelf]) -> Group:
    own, beside_connection = shelves
    return (*beside_connection.wide_for(subject), *own.narrow_for(subject))
