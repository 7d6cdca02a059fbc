"""What a change of one object means for policies, and a change of a policy for topics."""

from __future__ import annotations

from dataclasses import dataclass

from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.parsed_policy import IN_TOPICS_NAMESPACE, InvalidKnobs, ParsedPolicy
from scalable_topics_operator.controllers.policy_book import PolicyBook
from scalable_topics_operator.controllers.policy_shelf import Group

Keys = frozenset[ObjectKey]


@dataclass(frozen=True, slots=True)
class Affected:
    """What has to be looked at again.

    Args:
        policies: whose status may have changed.
        topics: whose effective policy has changed.
        connections: that a policy of a wide scope is for.
    """

    policies: Keys = frozenset()
    topics: Keys = frozenset()
    connections: Keys = frozenset()


class PolicyNews:
    """Compares objects with how they were when it was last told of them.

    Telling it of a change a second time, or of one that policies do not care for, gives nothing to look at.
    """

    def __init__(self, cache: ObjectCache, book: PolicyBook) -> None:
        self._cache = cache
        self._book = book
        self._groups: dict[ObjectKey, Group] = {}
        self._policies: dict[ObjectKey, ParsedPolicy] = {}
        self._connections: set[ObjectKey] = set()

    def topic_changed(self, key: ObjectKey) -> Keys:
        """A ScalableTopic is new, gone or has changed: answers the policies that it makes a difference to.

        Those are the ones that apply now and did not, or did and do not, and the ones beside or above which they lie.
        """
        body = self._cache.get(key)
        before = self._groups.pop(key, ())
        if body is None:
            self._book.forget(key)
            after: Group = ()
        else:
            after = self._book.applied(key, body)
        if after:
            self._groups[key] = after
        if after == before:
            return frozenset()
        widths = {policy.key: policy.width for policy in (*before, *after)}
        moved = {policy.key for policy in before} ^ {policy.key for policy in after}
        widest = min((widths[policy] for policy in moved), default=None)
        return frozenset(policy for policy, width in widths.items() if widest is not None and width >= widest)

    def connection_changed(self, key: ObjectKey) -> Keys:
        """A connection is new, gone or has changed: answers the policies that miss it, or miss it no more."""
        exists = self._cache.get(key) is not None
        if exists == (key in self._connections):
            return frozenset()
        (self._connections.add if exists else self._connections.discard)(key)
        return frozenset(policy.key for policy in self._book.policies_in(key.namespace) if policy.connection == key)

    def policy_changed(self, key: ObjectKey) -> Affected:
        """A policy is new, gone or has changed: answers the others it bears on, and the topics."""
        before = self._policies.pop(key, None)
        try:
            after = self._book.policy(key)
        except InvalidKnobs:
            after = None
        if after is not None:
            self._policies[key] = after
        if before is after:
            return Affected()
        policies = {policy.key for policy in self._book.policies_in(key.namespace)}
        topics = set()
        connections = {
            policy.connection
            for policy in (before, after)
            if policy is not None and policy.connection is not None and policy.scope not in IN_TOPICS_NAMESPACE
        }
        for policy in (before, after):
            if policy is None:
                continue
            policies.update(guest.key for guest in self._book.guests_of(policy))
            for topic, answer in self._book.within(policy):
                # Now, or each of its topics would bring it up again when it is next looked at.
                policies.update(self.topic_changed(topic))
                body = self._cache.get(topic)
                if answer is not None and body is not None and self._book.effective(topic, body) != answer:
                    topics.add(topic)
        return Affected(frozenset(policies - {key}), frozenset(topics), frozenset(connections))
