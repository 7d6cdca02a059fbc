"""Subscriptions of a topic: shown by any replica, made and deleted in the leader's one queue (R10, R32)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.ordered_subscriptions import (
    find_subscription,
    ordered_subscriptions,
    subscription_object,
)
from scalable_topics_operator.controllers.subscription_wishes import SubscriptionWishes
from scalable_topics_operator.controllers.topic_backend import is_native
from scalable_topics_operator.gateway import native_stats
from scalable_topics_operator.gateway import subscription_routes as routes
from scalable_topics_operator.gateway.acting import CallerWrites
from scalable_topics_operator.gateway.common_parameters import FORCE, SUBSCRIPTION
from scalable_topics_operator.gateway.forwarding import Forwarding
from scalable_topics_operator.gateway.looks import SegmentLooks
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.rest_call import Bound, Call, RestAdmission, Subject
from scalable_topics_operator.gateway.views import Leaders
from scalable_topics_operator.gateway.waiting import WAIT_SECONDS, ObjectWaits
from scalable_topics_operator.operations.errors import RequestRefused
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase
from scalable_topics_operator.operations.subscriptions import SubscriptionWish

_INTERNAL = ("__", "pulsar.")
# In words of the REST and in words of manifests.
_KINDS = {routes.STREAM: "Stream", routes.CHECKPOINT: "Checkpoint"}
_NAMES = {manifest: rest for rest, manifest in _KINDS.items()}
_RECORD_SECONDS = 20.0
# The look at the segments, the record, the wait.
_LEADER_SECONDS = 15.0 + _RECORD_SECONDS + WAIT_SECONDS
_GONE = "gone"


class SubscriptionHandlers:
    """Handles subscriptions.

    Args:
        admission: finds topics and asks for rights.
        writes: makes objects for callers.
        waits: lets them wait.
        cache: the objects.
        looks: asks brokers.
        wishes: what the topics' reconciles record.
        leaders: who leads what.
        forwarding: passes on what only a leader can do.
    """

    def __init__(
        self,
        admission: RestAdmission,
        writes: CallerWrites,
        waits: ObjectWaits,
        cache: ObjectCache,
        looks: SegmentLooks,
        wishes: SubscriptionWishes,
        leaders: Leaders,
        forwarding: Forwarding,
    ) -> None:
        self._admission = admission
        self._writes = writes
        self._waits = waits
        self._cache = cache
        self._looks = looks
        self._wishes = wishes
        self._leaders = leaders
        self._forwarding = forwarding

    def bound(self) -> list[Bound]:
        """What it answers."""
        return [
            (routes.LIST_SUBSCRIPTIONS, self._list),
            (routes.GET_SUBSCRIPTION, self._get),
            (routes.CREATE_SUBSCRIPTION, self._create),
            (routes.DELETE_SUBSCRIPTION, self._delete),
        ]

    async def _list(self, call: Call) -> web.StreamResponse:
        shown = await self._shown(await self._admission.topic(call))
        return web.json_response([shown[name] for name in sorted(shown)])

    async def _get(self, call: Call) -> web.StreamResponse:
        subject, name = await self._admission.topic(call), call.values.need(SUBSCRIPTION)
        shown = (await self._shown(subject)).get(name)
        if shown is None:
            raise Refusal(
                404,
                f"no subscription {name} of {subject.topic} is declared or was asked for; those that consumers have "
                "made by themselves are in the topic's stats",
            )
        return web.json_response(shown)

    async def _create(self, call: Call) -> web.StreamResponse:
        subject, name = await self._admission.topic(call), _name(call)
        kind = call.values.get(routes.KIND) or routes.STREAM
        latest = call.values.get(routes.INITIAL_POSITION) == routes.LATEST
        elsewhere = await self._elsewhere(call, subject)
        if elsewhere is not None:
            return elsewhere
        if is_native(subject.body):
            await self._create_native(subject, name, kind, latest=latest)
            return await self._until(subject, name, SubscriptionPhase.ACTIVE.value)
        found = find_subscription(self._cache, subject.key, name)
        _require_kind(name, kind, _entries(subject).get(name), found[1] if found is not None else None)
        if kind == routes.QUEUE:
            await self._record(subject, SubscriptionWish(name, latest=latest))
        elif found is None:
            made = subscription_object(subject.body, name, _KINDS[kind], latest=latest)
            await self._writes.create(call.caller, SUBSCRIPTIONS, made)
        return await self._until(subject, name, SubscriptionPhase.ACTIVE.value)

    async def _create_native(self, subject: Subject, name: str, kind: str, *, latest: bool) -> None:
        """Have the brokers' own subscription made: who reads what they decide themselves, so an object of ours that
        registers consumers would have nothing to say. Raises Refusal.
        """
        if kind == routes.CHECKPOINT:
            raise Refusal(
                412,
                "on the Native backend checkpoint consumers keep their positions themselves, and the brokers have no "
                "subscription of that type; STREAM and QUEUE can be made",
            )
        told = native_stats.subscriptions(await self._looks.native(subject)).get(name)
        _require_known_kind(name, kind, _entries(subject).get(name), told["type"] if told is not None else None)
        await self._record(subject, SubscriptionWish(name, latest=latest, ordered=kind == routes.STREAM))

    async def _delete(self, call: Call) -> web.StreamResponse:
        subject, name = await self._admission.topic(call), _name(call)
        elsewhere = await self._elsewhere(call, subject)
        if elsewhere is not None:
            return elsewhere
        force = call.values.get(FORCE) or False
        found = find_subscription(self._cache, subject.key, name)
        consumers = (await self._looks.attached(subject)).consumers
        if found is None and name not in consumers and name not in _entries(subject):
            raise Refusal(404, f"there is no subscription {name} on {subject.topic}")
        registered = ((found[1].get("status") or {}).get("consumers", ())) if found is not None else ()
        attached = max(consumers.get(name, 0), len(registered))
        if attached and not force:
            raise Refusal(
                412, f"{attached} consumers of subscription {name} are attached; stop them, or use ?force=true"
            )
        if found is not None:
            # The operator deletes it once that is recorded; whether the caller might is found out before.
            await self._writes.delete(call.caller, SUBSCRIPTIONS, found[1], dry_run=True)
        await self._record(subject, SubscriptionWish(name, deletes=True, forced=force))
        return await self._until(subject, name, None)

    async def _elsewhere(self, call: Call, subject: Subject) -> web.StreamResponse | None:
        """The leader's answer, if that is another replica. Raises Refusal for what cannot be changed now."""
        self._writes.require_enabled()
        subject.require_changeable()
        self._waits.require_room()
        leader = self._leaders.leader_of(subject.key)
        if leader is None or not leader.is_me:
            return await self._forwarding.http(call.request, subject.topic, leader, call.authorization, _LEADER_SECONDS)
        return None

    async def _record(self, subject: Subject, wish: SubscriptionWish) -> None:
        """Have the topic's reconcile record it, after what it is busy with. Raises Refusal."""
        try:
            async with asyncio.timeout(_RECORD_SECONDS):
                await self._wishes.record(subject.key, wish)
        except RequestRefused as refused:
            raise Refusal(409, str(refused)) from None
        except TimeoutError:
            raise Refusal(
                503, f"{subject.topic} is busy with something else; nothing was recorded, try again"
            ) from None

    async def _until(self, subject: Subject, name: str, phase: str | None) -> web.StreamResponse:
        """Wait until a subscription is in a phase, or gone (None)."""

        def reached(body: Body | None) -> str | None:
            entry = _entries_of(body).get(name)
            if body is None or entry is None:
                return _GONE if phase is None or body is None else None
            return entry["phase"] if entry["phase"] in (phase, SubscriptionPhase.CURSOR_LOST.value) else None

        found = await self._waits.until(subject.key, reached)
        if found == SubscriptionPhase.CURSOR_LOST.value:
            raise Refusal(409, f"subscription {name} lost its cursor on some segments; delete it to start anew")
        if found == _GONE and phase is not None:
            raise Refusal(409, f"{subject.topic} was deleted meanwhile")
        if found is not None:
            return web.Response(status=204)
        entry = _entries_of(self._waits.latest(subject.key)).get(name) or {}
        stands = entry.get("phase", "not looked at yet")
        return web.json_response({"reason": f"subscription {name} is {stands}; look at it again later"}, status=202)

    async def _shown(self, subject: Subject) -> dict[str, dict[str, Any]]:
        """The subscriptions that are declared or were asked for, by name; on Native those that brokers have, too."""
        shown = self._known(subject)
        if not is_native(subject.body):
            return shown
        for name, told in native_stats.subscriptions(await self._looks.native(subject)).items():
            shown[name] = _as_told(shown.get(name) or _made_by_clients(name), told)
        return shown

    def _known(self, subject: Subject) -> dict[str, dict[str, Any]]:
        declared = {entry["name"]: entry for entry in subject.body["spec"].get("subscriptions") or ()}
        objects = {
            body["spec"]["subscription"]: body
            for _, body in sorted(ordered_subscriptions(self._cache, subject.key), key=_age, reverse=True)
        }
        entries = _entries(subject)
        return {
            name: _subscription(name, entries.get(name), declared.get(name), objects.get(name))
            for name in entries.keys() | declared.keys() | objects.keys()
        }


def _name(call: Call) -> str:
    name = call.values.need(SUBSCRIPTION)
    if name.startswith(_INTERNAL):
        raise Refusal(400, f"{name!r} is no subscription: names that start with __ or pulsar. are the brokers' own")
    return name


def _require_kind(name: str, kind: str, entry: Mapping[str, Any] | None, found: Body | None) -> None:
    """Raises Refusal: 409 for a subscription that is being deleted, or is of another kind.

    Of one that the spec declares nobody has said of which kind it is.
    """
    known = None
    if found is not None:
        known = _NAMES[found["spec"]["type"]]
    elif entry is not None and entry.get("requested"):
        known = routes.QUEUE
    _require_known_kind(name, kind, entry, known)


def _require_known_kind(name: str, kind: str, entry: Mapping[str, Any] | None, known: str | None) -> None:
    """Raises Refusal: 409 for a subscription that is being deleted, or is of another kind, where that is known."""
    if entry is not None and entry["phase"] == SubscriptionPhase.DELETING.value:
        raise Refusal(409, f"subscription {name} is being deleted; try again once it is gone")
    if known not in (None, kind):
        raise Refusal(409, f"subscription {name} is there already, of type {known}")


def _entries(subject: Subject) -> dict[str, Mapping[str, Any]]:
    return _entries_of(subject.body)


def _entries_of(body: Body | None) -> dict[str, Mapping[str, Any]]:
    return {entry["name"]: entry for entry in ((body or {}).get("status") or {}).get("subscriptions", ())}


def _subscription(
    name: str, entry: Mapping[str, Any] | None, declared: Mapping[str, Any] | None, found: Body | None
) -> dict[str, Any]:
    spec = found["spec"] if found is not None else {}
    position = (entry or declared or spec).get("initialPosition", "Earliest")
    shown: dict[str, Any] = {
        "subscription": name,
        "type": _NAMES.get(spec.get("type", ""), routes.STREAM if (entry or {}).get("ordered") else routes.QUEUE),
        "phase": entry["phase"] if entry is not None else SubscriptionPhase.CREATING.value,
        "initialPosition": routes.LATEST if position == "Latest" else routes.EARLIEST,
        "outOfScope": list((entry or {}).get("outOfScope", ())),
        "declaredBy": "spec" if declared is not None else "object" if found is not None else "request",
    }
    if found is not None:
        shown["assignment"] = _assignment(found.get("status") or {})
        # While cursors move the topic's own record says nothing of it.
        if shown["phase"] == SubscriptionPhase.ACTIVE.value:
            shown["phase"] = (found.get("status") or {}).get("phase", shown["phase"])
    return shown


def _made_by_clients(name: str) -> dict[str, Any]:
    shown = _subscription(name, None, None, None)
    return {**shown, "phase": SubscriptionPhase.ACTIVE.value, "declaredBy": "clients"}


def _as_told(shown: dict[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """A subscription as the brokers that own the layout tell of it."""
    shown = {**shown, "type": told["type"], "msgBacklog": int(told.get("msgBacklog") or 0)}
    if told["type"] == routes.STREAM:
        shown["assignment"] = native_stats.assignment(told)
    return shown


def _assignment(status: Mapping[str, Any]) -> dict[str, Any]:
    """Who reads what. What a consumer's incarnation is stays between it and its leader."""
    return {
        "version": status.get("version"),
        "drained": list(status.get("drained", ())),
        "consumers": [
            {
                "name": one["name"],
                "registeredAt": one["registeredAt"],
                "segments": [
                    {"segment": part["segment"], "buckets": list(part.get("buckets", ()))}
                    for part in one.get("assignments", ())
                ],
                "releasing": list(one.get("releasing", ())),
                "releasingBuckets": [
                    {"segment": part["segment"], "buckets": list(part["buckets"])}
                    for part in one.get("releasingBuckets", ())
                ],
            }
            for one in status.get("consumers", ())
        ],
    }


def _age(entry: tuple[ObjectKey, Body]) -> tuple[str, str]:
    return entry[1]["metadata"]["creationTimestamp"], entry[0].name
