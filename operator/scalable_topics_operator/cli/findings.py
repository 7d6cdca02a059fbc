"""What `stopics doctor` finds, judged from what objects say. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from scalable_topics.layout import MAX_RECORDS
from scalable_topics_operator.cli.topic_view import TopicView, age, seconds_since
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.lease_record import REPLICA, SHARD, LeaseRecord
from scalable_topics_operator.cluster.segment_operations import FINISHED
from scalable_topics_operator.controllers.conditions import find_condition, holds

LEAST_KUBERNETES = (1, 31)
_LONG_SECONDS = 600.0
_CLOCK_SECONDS = 2.0
_MOST_LINES = 20
_MANY_RESTARTS = 5
_FULL = 0.8


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor.

    Args:
        level: how bad it is.
        about: what was looked at.
        message: what was found.
        advice: what to do; empty where nothing is to be done.
    """

    level: Level
    about: str
    message: str
    advice: str = ""

    def as_json(self) -> Mapping[str, str]:
        """For machines."""
        return {"level": self.level.value, "about": self.about, "message": self.message, "advice": self.advice}


def ok(about: str, message: str) -> Finding:
    """Nothing is to be done."""
    return Finding(Level.OK, about, message)


def warn(about: str, message: str, advice: str) -> Finding:
    """It works, and somebody should look."""
    return Finding(Level.WARN, about, message, advice)


def fail(about: str, message: str, advice: str) -> Finding:
    """It does not work."""
    return Finding(Level.FAIL, about, message, advice)


def judge_server(version: str) -> Finding:
    """The API server's version, such as `v1.34.1`."""
    numbers = version.lstrip("v").split(".")[:2]
    found = tuple(int("".join(filter(str.isdigit, one)) or 0) for one in numbers)
    if found < LEAST_KUBERNETES:
        least = ".".join(map(str, LEAST_KUBERNETES))
        return warn("API server", f"Kubernetes {version}", f"scalable topics are tested from {least} on: upgrade")
    return ok("API server", f"Kubernetes {version}")


def missing_kind(plural: str) -> Finding:
    """A kind of ours, by its plural, that the API server does not have."""
    return fail("kinds", f"not installed: {plural}", "kubectl apply --server-side -f crds/, or helm upgrade")


def judge_versions(operator: str, own: str) -> Finding:
    """Whether operator and stopics are of one release."""
    if operator == own:
        return ok("version", f"operator and stopics are {own}")
    return warn(
        "version", f"the operator is {operator}, stopics {own}", f"pip install 'scalable-topics[cli]=={operator}'"
    )


def judge_leases(bodies: Iterable[Body], shards: int | None, now: datetime, renewed: frozenset[str]) -> list[Finding]:
    """Whether every shard is led, and by whom.

    Args:
        bodies: Leases of the operator's namespace.
        shards: into how many topics are divided; None if nobody has recorded it.
        now: by this machine's clock, which need not be that of the replicas.
        renewed: names of Leases that were seen to change meanwhile, whatever clocks say.
    """
    fresh: dict[str, list[LeaseRecord]] = {SHARD: [], REPLICA: []}
    for body in bodies:
        record = LeaseRecord.parse(body)
        if record is not None and record.holder and (_is_fresh(body, record, now) or record.name in renewed):
            fresh[record.part].append(record)
    if shards is None:
        return [fail("leaders", "the operator has never run here", "install it: docs/installing.md")]
    led = {record.shard: record for record in fresh[SHARD]}
    without = [shard for shard in range(shards) if shard not in led]
    if without:
        advice = "kubectl get lease, kubectl get pods: start a replica; clients go on with the last layout meanwhile"
        return [fail("leaders", f"shards {', '.join(map(str, without))} of {shards} have no leader", advice)]
    holders = sorted({record.holder for record in led.values()})
    found = [ok("leaders", f"{shards} shards are led by {', '.join(holders)}")]
    if len(fresh[REPLICA]) < 2:
        found.append(warn("replicas", "there is one alone", "two or more survive the loss of a node: replicas: 2"))
    else:
        found.append(ok("replicas", f"{len(fresh[REPLICA])} show themselves"))
    return found


def _is_fresh(body: Body, record: LeaseRecord, now: datetime) -> bool:
    """Whether a Lease counts still, if this machine's clock is right."""
    since = seconds_since((body.get("spec") or {}).get("renewTime"), now)
    # One of the future was renewed by another clock, by which it may have ended long ago.
    return since is not None and -_CLOCK_SECONDS <= since <= record.duration_seconds


def unsure_leases(bodies: Iterable[Body], now: datetime) -> dict[str, LeaseRecord]:
    """Leases of shards and replicas, by name, of which this machine's clock does not tell that they count.

    Args:
        bodies: Leases of the operator's namespace.
        now: by this machine's clock.
    """
    return {
        record.name: record
        for body in bodies
        if (record := LeaseRecord.parse(body)) and not _is_fresh(body, record, now)
    }


def judge_pods(pods: Iterable[Body]) -> list[Finding]:
    """Whether the operator's pods are ready."""
    found: list[Finding] = []
    count = 0
    for pod in pods:
        count += 1
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        status = pod.get("status") or {}
        restarts = sum(one.get("restartCount", 0) for one in status.get("containerStatuses") or ())
        look = f"kubectl describe pod {pod['metadata']['name']} -n {pod['metadata']['namespace']}"
        if not holds(status, "Ready"):
            why = find_condition(status, "Ready").get("message") or "-"
            found.append(warn(f"pod {name}", f"not ready, {status.get('phase')}: {why}", look))
        elif restarts >= _MANY_RESTARTS:
            found.append(warn(f"pod {name}", f"restarted {restarts} times", f"{look}; kubectl logs --previous"))
    return found or ([ok("pods", f"{count} are ready")] if count else [])


def judge_connections(bodies: Sequence[Body]) -> list[Finding]:
    """Whether the Pulsar clusters are reached."""
    found: list[Finding] = []
    for body in bodies:
        name, status = _name(body), body.get("status") or {}
        look = f"kubectl describe stconn {body['metadata']['name']} -n {body['metadata']['namespace']}"
        if not holds(status, "Ready"):
            found.append(
                fail(f"connection {name}", _said(find_condition(status, "Ready")) or "not looked at yet", look)
            )
        missing = (status.get("rights") or {}).get("missing") or ()
        if missing:
            found.append(
                warn(f"connection {name}", f"lacks rights: {', '.join(missing)}", "docs/connections.md has them")
            )
        load = find_condition(status, "LoadFresh")
        if load.get("status") == "False":
            found.append(warn(f"connection {name}", f"load: {_said(load)}", look))
        orphans = status.get("orphans") or ()
        if orphans:
            names = ", ".join(str(one.get("topic")) for one in orphans[:3])
            advice = "apply their ScalableTopics again: docs/running.md, Recovery"
            found.append(warn(f"connection {name}", f"{len(orphans)} topics were left behind: {names}", advice))
        for one in status.get("namespacePolicies") or ():
            if one.get("problem"):
                found.append(warn(f"connection {name}", f"{one['pulsarNamespace']}: {one['problem']}", look))
    if not bodies:
        advice = "apply a ScalableTopicConnection: docs/connections.md"
        return [warn("connections", "there is none", advice)]
    return found or [ok("connections", f"all {len(bodies)} are ready")]


def judge_topics(bodies: Sequence[Body], now: datetime) -> list[Finding]:
    """How topics stand: not ready, stuck, without load, with strays or lost cursors."""
    found = [finding for body in bodies for finding in _judge_topic(TopicView(body), now)]
    if not found:
        return [ok("topics", f"all {len(bodies)} are ready")]
    shown = sorted(found, key=lambda one: one.level is not Level.FAIL)[:_MOST_LINES]
    if len(found) > len(shown):
        shown.append(warn("topics", f"{len(found) - len(shown)} more findings", "stopics doctor -n NAMESPACE"))
    return shown


def judge_subscriptions(bodies: Iterable[Body]) -> list[Finding]:
    """Ordered subscriptions that cannot go on."""
    return [
        fail(f"subscription {_name(body)}", _said(find_condition(status, "Stalled")), f"stopics subscriptions {topic}")
        for body in bodies
        if holds(status := body.get("status") or {}, "Stalled") and (topic := body["spec"].get("scalableTopic"))
    ]


def judge_operations(bodies: Iterable[Body], now: datetime) -> list[Finding]:
    """Operations that were asked for and do not end."""
    found = []
    for body in bodies:
        status, metadata = body.get("status") or {}, body["metadata"]
        since = seconds_since(metadata.get("creationTimestamp"), now)
        if status.get("phase") not in FINISHED and since is not None and since > _LONG_SECONDS:
            stands = (
                ": ".join(str(status[one]) for one in ("phase", "step", "message") if status.get(one)) or "not begun"
            )
            look = f"stopics describe {body['spec'].get('scalableTopic')} -n {metadata['namespace']}"
            found.append(warn(f"operation {_name(body)}", f"{stands}, for {age(since)}", look))
    return found


def judge_load_ages(ages_seconds: Mapping[str, float | None], interval_seconds: Mapping[str, float]) -> list[Finding]:
    """Whether load is measured.

    Args:
        ages_seconds: of the load of each topic, by namespace and name; None where there is none.
        interval_seconds: between two samples, of each topic's connection; nothing is said of topics without.
    """
    found = []
    judged = {topic: seconds for topic, seconds in ages_seconds.items() if topic in interval_seconds}
    for topic, seconds in sorted(judged.items()):
        most = 3 * max(interval_seconds[topic], 10.0)
        if seconds is None or seconds > most:
            told = "not measured yet" if seconds is None else f"{age(seconds)} old, more than {age(most)}"
            namespace, _, name = topic.rpartition("/")
            advice = f"nothing is split or merged by it: stopics explain {name} -n {namespace}"
            found.append(warn(f"load of {topic}", told, advice))
    known = [seconds for seconds in judged.values() if seconds is not None]
    if not found and known:
        found.append(ok("load", f"of {len(known)} topics that were asked the oldest is {age(max(known))} old"))
    return found


def _judge_topic(view: TopicView, now: datetime) -> list[Finding]:
    about, look = f"topic {view.namespace}/{view.name}", f"stopics describe {view.name} -n {view.namespace}"
    found: list[Finding] = []
    ready = view.condition("Ready")
    if holds(view.status, "Stalled"):
        found.append(
            fail(about, _said(view.condition("Stalled")), f"{look}; docs/topics.md has what to do about each reason")
        )
    elif not holds(view.status, "Ready"):
        # What is on its way gets its time.
        since = seconds_since(ready.get("lastTransitionTime") or view.body["metadata"].get("creationTimestamp"), now)
        if not holds(view.status, "Reconciling") or since is None or since > _LONG_SECONDS:
            found.append(fail(about, _said(ready) or "nobody has looked at it yet", look))
    if view.condition("LoadFresh").get("status") == "False":
        told = _said(view.condition("LoadFresh"))
        found.append(warn(about, f"load: {told}", "nothing is split or merged by load: docs/autoscaling.md"))
    if view.body["spec"].get("paused"):
        found.append(warn(about, "paused", "the operator changes nothing of it until spec.paused is taken away"))
    found += _judge_journal(view, about, look, now)
    for one in view.status.get("subscriptions") or ():
        if one.get("phase") == "CursorLost":
            advice = "make the cursor again, or remove the subscription: docs/topics.md"
            found.append(fail(about, f"subscription {one.get('name')} has lost a cursor", advice))
    for report in view.status.get("reports") or ():
        found.append(warn(about, f"{report.get('reason')}: {report.get('message')}", look))
    return found


def _judge_journal(view: TopicView, about: str, look: str, now: datetime) -> list[Finding]:
    found = []
    operation = view.status.get("operation") or {}
    since = seconds_since(operation.get("startedAt"), now)
    if since is not None and since > _LONG_SECONDS:
        told = (
            f"{operation.get('kind')} is at {operation.get('step')} for {age(since)}: {operation.get('message') or '-'}"
        )
        found.append(warn(about, told, look))
    records = len((view.status.get("layout") or {}).get("segments") or ())
    if records >= _FULL * MAX_RECORDS:
        advice = f"see what holds sealed segments: stopics drain {view.name} -n {view.namespace}"
        found.append(warn(about, f"{records} of {MAX_RECORDS} segments: nothing is split by load any more", advice))
    return found


def _said(found: Mapping[str, Any]) -> str:
    return ": ".join(str(found[one]) for one in ("reason", "message") if found.get(one))


def _name(body: Body) -> str:
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"
