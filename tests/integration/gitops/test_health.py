"""Argo CD's script and Flux's expressions agree with kstatus on objects in every state that the operator writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import scalable_topics_operator
from scalable_topics_operator.controllers.auto_scaler import AUTO_SCALE
from scalable_topics_operator.controllers.conditions import Aspect, Standing, apply_standing, with_aspects
from scalable_topics_operator.controllers.topic_status import migrated_aspect, paused_aspect
from tests.support.crds import our_crds
from tests.support.gitops import Judgement, judge, judged_kinds

_NOW = "2026-01-02T03:04:05Z"
_STANDINGS = {
    "healthy": (Standing.healthy(), "Current", "Healthy"),
    "healthy with a remark": (Standing.healthy("lacks rights: brokers"), "Current", "Healthy"),
    "at work for the first time": (
        Standing.working("Creating", "creating, step Creating"),
        "InProgress",
        "Progressing",
    ),
    "at work on what is ready": (
        Standing.working("Splitting", "step Sealing", ready=True),
        "InProgress",
        "Progressing",
    ),
    "tried again": (Standing.working("BrokerUnavailable", "no answer"), "InProgress", "Progressing"),
    "waits for a person": (Standing.stuck("CursorLost", "declare it anew"), "Failed", "Degraded"),
}
# What conditions there are besides, by kind, in each form that they have.
_BESIDES = {
    "ScalableTopic": (
        migrated_aspect(None),
        Aspect("Migrated", True, "Migrated", "it was a topic of 4 partitions until then"),
        Aspect("LoadFresh", False, "LoadStale", "statistics are too old"),
        Aspect(AUTO_SCALE, True, "Quiet", "on"),
        Aspect(AUTO_SCALE, False, "DesiredSet", "spec.segments.desired is set"),
    ),
    "ScalableTopicConnection": (
        Aspect("LoadFresh", True, "Sampled"),
        Aspect("LoadFresh", False, "BrokersMissing", "broker a: no answer"),
    ),
    "SegmentAutoScalePolicy": (Aspect("Conflicted", True, "OldestWins", "3 topics"),),
    "SegmentOperation": (),
    "ScalableTopicSubscription": (),
}
_PAUSED = paused_aspect(paused=True)


def _object(kind: str, standing: Standing | None, *aspects: Aspect, observed: int = 3) -> dict[str, Any]:
    body: dict[str, Any] = {
        "apiVersion": "scalabletopics.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "orders", "namespace": "shop", "generation": 3, "uid": "1"},
        "spec": {},
    }
    if standing is not None:
        conditions = apply_standing((), standing, generation=observed, now=_NOW)
        status = with_aspects({"conditions": conditions}, aspects, generation=observed, now=_NOW)
        body["status"] = {**status, "observedGeneration": observed}
    return body


def _all() -> Iterator[Any]:
    for kind, besides in _BESIDES.items():
        for name, (standing, kstatus, argocd) in _STANDINGS.items():
            for aspect in (None, *besides):
                extra = () if aspect is None else (aspect,)
                words = "" if aspect is None else f", {aspect.kind} {aspect.holds} {aspect.reason}"
                yield pytest.param(_object(kind, standing, *extra), kstatus, argocd, id=f"{kind}: {name}{words}")


@pytest.mark.parametrize(("body", "kstatus", "argocd"), list(_all()))
def test_all_three_say_the_same(body: dict[str, Any], kstatus: str, argocd: str) -> None:
    found = judge(body)
    assert (found.kstatus, found.flux, found.argocd) == (kstatus, kstatus, argocd)
    ready = body["status"]["conditions"][0]
    assert found.message == ready["reason"] + (f": {ready['message']}" if ready["message"] else "")


@pytest.mark.parametrize("kind", _BESIDES)
def test_a_newer_spec_is_not_judged_by_what_was_said_of_an_older_one(kind: str) -> None:
    for standing, _, _ in _STANDINGS.values():
        found = judge(_object(kind, standing, observed=2))
        assert (found.kstatus, found.flux, found.argocd) == ("InProgress", "InProgress", "Progressing")
        assert found.message == "the operator has not looked at the newest spec yet"


@pytest.mark.parametrize("kind", _BESIDES)
def test_an_object_that_nobody_has_looked_at_is_not_ready(kind: str) -> None:
    """By kstatus alone it is, as it has no conditions: the samples close that gap."""
    for body in (_object(kind, None), {**_object(kind, None), "status": {}}):
        found = judge(body)
        assert found.kstatus == "Current"
        assert found.flux in {"Unknown", "InProgress"}
        assert found.argocd == "Progressing"


@pytest.mark.parametrize("kind", _BESIDES)
def test_what_is_being_deleted_is_under_way(kind: str) -> None:
    for standing, _, _ in _STANDINGS.values():
        body = _object(kind, standing)
        body["metadata"] |= {"deletionTimestamp": _NOW, "finalizers": ["scalabletopics.io/topic"]}
        found = judge(body)
        assert (found.kstatus, found.flux, found.argocd) == ("Terminating", "InProgress", "Progressing")


def test_a_paused_topic_is_suspended_unless_something_is_wrong_with_it() -> None:
    """kstatus has no word for that: it is as current as it is."""
    for name, (standing, kstatus, argocd) in _STANDINGS.items():
        found = judge(_object("ScalableTopic", standing, _PAUSED))
        expected = "Degraded" if argocd == "Degraded" else "Suspended"
        assert found == Judgement(kstatus, kstatus, expected, found.message), name
        if expected == "Suspended":
            assert found.message == _PAUSED.message


def test_the_samples_know_all_our_kinds_and_the_table_all_conditions() -> None:
    kinds = {crd["spec"]["names"]["kind"] for crd in our_crds()}
    assert judged_kinds() == kinds == _BESIDES.keys()
    root = Path(scalable_topics_operator.__file__).parent
    source = "\n".join(file.read_text() for file in root.rglob("*.py"))
    written = set(re.findall(r'Aspect\(\s*"(\w+)"', source)) | {AUTO_SCALE}
    written |= set(re.findall(r'^_CONFLICTED = "(\w+)"', source, re.MULTILINE))
    tried = {aspect.kind for besides in _BESIDES.values() for aspect in besides} | {_PAUSED.kind}
    assert written == tried
