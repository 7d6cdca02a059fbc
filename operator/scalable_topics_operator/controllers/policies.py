"""SegmentAutoScalePolicies: what each comes to, on how many topics, and what is wrong with it (R3, R37)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scalable_topics_operator.autoscale.policy import knob_text
from scalable_topics_operator.cluster.event_recorder import EventRecorder
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import POLICIES
from scalable_topics_operator.cluster.status_store import StatusStore
from scalable_topics_operator.controllers.conditions import Standing, apply_standing, find_condition, set_condition
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.parsed_policy import IN_TOPICS_NAMESPACE, InvalidKnobs, ParsedPolicy
from scalable_topics_operator.controllers.policy_book import PolicyBook
from scalable_topics_operator.controllers.policy_shelf import Group
from scalable_topics_operator.controllers.policy_survey import (
    Conflict,
    agreed_knobs,
    conflicts_of,
    first_problem,
    prefixes_of,
    told,
    told_with_numbers,
)
from scalable_topics_operator.controllers.timestamps import timestamp_now

_CONFLICTED = "Conflicted"
# Ten thousand topics take a while to look at; others get their turn in between.
_TOPICS_AT_A_TIME = 200


@dataclass(frozen=True, slots=True)
class _Finding:
    """What is to be said of a policy.

    Args:
        standing: its conditions.
        matched_topics: how many topics it applies to.
        knobs: those that come out the same on all of them, as `knob_list` has them.
        conflicts: where others of its scope disagree, and on how many topics.
    """

    standing: Standing
    matched_topics: int = 0
    knobs: tuple[Mapping[str, Any], ...] = ()
    conflicts: Mapping[Conflict, int] | None = None


class SegmentAutoScalePolicyController:
    """Keeps the status of policies up to date; what applies to topics is the book's to say.

    Args:
        kube: the API server.
        cache: objects as last seen.
        events: tells people.
        book: which policies apply to which topic.
    """

    def __init__(self, kube: KubeClient, cache: ObjectCache, events: EventRecorder, book: PolicyBook) -> None:
        self._kube = kube
        self._cache = cache
        self._events = events
        self._book = book

    async def reconcile(self, key: ObjectKey) -> float | None:
        """Look at one policy and write its status if that changed; it is looked at again when something changes."""
        body = self._cache.get(key)
        if body is None or body["metadata"].get("deletionTimestamp"):
            return None
        finding = await self._find(key)
        if finding is not None:
            await self._tell(StatusStore(self._kube, POLICIES, body, self._observe), finding)
        return None

    async def _find(self, key: ObjectKey) -> _Finding | None:
        try:
            policy = self._book.policy(key)
        except InvalidKnobs as error:
            return _Finding(Standing.stuck("InvalidSpec", f"the policy is ignored: {error}"))
        if policy is None:
            return None
        groups = await self._groups(policy)
        prefixes = prefixes_of(key, groups) or {(*self._book.wider_than(policy), policy)}
        outcomes = [self._book.together(prefix) for prefix in prefixes]
        return _Finding(
            self._standing(policy, first_problem(outcomes)),
            sum(groups.values()),
            tuple(agreed_knobs(outcomes)),
            conflicts_of(key, groups),
        )

    async def _groups(self, policy: ParsedPolicy) -> Mapping[Group, int]:
        """The groups that a policy is in, with the number of topics of each."""
        groups: Counter[Group] = Counter()
        for index, key in enumerate(self._book.candidates(policy)):
            if index % _TOPICS_AT_A_TIME == _TOPICS_AT_A_TIME - 1:
                await asyncio.sleep(0)
            body = self._cache.get(key)
            group = self._book.applied(key, body) if body is not None else ()
            # By key: should it change meanwhile, it is looked at again anyway.
            if any(found.key == policy.key for found in group):
                groups[group] += 1
        return groups

    def _standing(self, policy: ParsedPolicy, problem: str) -> Standing:
        connection = policy.connection
        if connection is not None and self._cache.get(connection) is None:
            why = (
                "name one, or leave connectionRef out"
                if policy.scope in IN_TOPICS_NAMESPACE
                else f"a policy of scope {policy.scope} counts only in its connection's own namespace"
            )
            return Standing.stuck(
                "ConnectionMissing",
                f"there is no ScalableTopicConnection {connection.namespace}/{connection.name}; {why}",
            )
        if problem:
            return Standing.stuck("InvalidCombination", f"nothing is changed automatically: {problem}")
        return Standing.healthy()

    async def _tell(self, store: StatusStore, finding: _Finding) -> None:
        before = store.status
        generation, now = store.body["metadata"]["generation"], timestamp_now()
        conflicts = finding.conflicts or {}
        conditions = set_condition(
            apply_standing(before.get("conditions", ()), finding.standing, generation=generation, now=now),
            _CONFLICTED,
            True if conflicts else None,
            "OldestWins",
            told_with_numbers(conflicts),
            generation=generation,
            now=now,
        )
        status = {
            **before,
            "observedGeneration": generation,
            "conditions": conditions,
            "matchedTopics": finding.matched_topics,
            "effective": [{**knob, "value": knob_text(knob["value"])} for knob in finding.knobs],
        }
        body = store.body
        if await store.write(status):
            await self._tell_events(body, before, status, finding.standing, conflicts)

    async def _tell_events(
        self,
        body: Body,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
        standing: Standing,
        conflicts: Mapping[Conflict, int],
    ) -> None:
        was, now = find_condition(before, "Ready"), find_condition(after, "Ready")
        if (was.get("reason"), was.get("message")) != (now["reason"], now["message"]):
            tell = self._events.normal if standing.ready else self._events.warning
            await tell(body, standing.reason, standing.message or "the policy is in effect")
        was_told, is_told = find_condition(before, _CONFLICTED), find_condition(after, _CONFLICTED)
        if was_told.get("message") == is_told.get("message"):
            return
        if conflicts:
            await self._events.warning(body, _CONFLICTED, told(conflicts))
        else:
            await self._events.normal(body, "ConflictEnded", "no other policy of its scope disagrees any more")

    def _observe(self, written: Body) -> None:
        self._cache.observe(POLICIES, written)
