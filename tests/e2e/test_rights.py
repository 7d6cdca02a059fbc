"""What the operator's service account may do is what it has done in all tests before this one, and no more.

The API server's audit log says what was asked; the objects of the release say what may be asked.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from dev.chart_values import CHART
from tests.e2e.kubectl import Manifest, run
from tests.e2e.release import NAME, NAMESPACE
from tests.e2e.report import RIGHTS_PART, Report

pytestmark = [pytest.mark.whole, pytest.mark.audited]

Right = tuple[str, str, str]
"""Group, resource with its subresource, verb."""
EVERY = ""
"""Stands for a name where a right is not bound to one."""
_SERVICE_ACCOUNT = "system:serviceaccount:"
ACCOUNT = f"{_SERVICE_ACCOUNT}{NAMESPACE}:{NAME}"
_REREAD = "a status write that another write was faster than reads the object again (StatusStore)"
# Needed, and not in every run: why, and what is tried where.
SELDOM: dict[Right, str] = {
    ("scalabletopics.io", "scalabletopicconnections", "get"): _REREAD,
    ("scalabletopics.io", "scalabletopicsubscriptions", "get"): _REREAD,
    ("scalabletopics.io", "segmentautoscalepolicies", "get"): _REREAD,
    ("scalabletopics.io", "segmentoperations", "get"): _REREAD,
    ("", "configmaps", "patch"): "thresholds that change, and the record of an installation from before shards",
    ("", "users", "impersonate"): "callers whom an identity provider vouches for, who are no service accounts",
    ("sparkoperator.k8s.io", "sparkapplications", "patch"): "metadata that somebody has taken away is put back",
}
# Of kinds that exist only with another Spark operator, which cannot be had here: the same code asks for both.
OTHER_SPARK_OPERATOR = "spark.apache.org"
OTHER = "of the other Spark operator"


def test_no_right_is_left_unused_and_none_was_lacking(report: Report) -> None:
    used, refused = _asked(Path(os.environ["E2E_AUDIT_LOG"]))
    always, named = _granted(_rendered()), _granted(_rendered("--set", "loadPipeline.sparkApplications=true"))
    granted = {right for right, _ in named}
    report.add(RIGHTS_PART, *_table(granted, used))
    # What a connection has left of a pipeline in pods is looked for, whether or not that may be seen; and pods that an
    # uninstallation ends have lost their account's rights before they let go of their Leases.
    lacking = {(right, name) for right, name in refused if always & {(right, EVERY), (right, name)}}
    assert {(right, name) for right, name in lacking if right[1] != "leases"} == set()
    assert {right for right, _ in refused} <= granted
    assert {right for right in granted - used - SELDOM.keys() if right[0] != OTHER_SPARK_OPERATOR} == set()
    assert used <= granted


def _rendered(*options: str) -> list[Manifest]:
    text = run("helm", "template", NAME, str(CHART), "--namespace", NAMESPACE, *options)
    return [document for document in yaml.safe_load_all(text) if document]


def _granted(manifests: Iterable[Manifest]) -> set[tuple[Right, str]]:
    """Rights with the name that each is bound to."""
    return {
        ((group, resource, verb), name)
        for manifest in manifests
        if manifest["kind"] in ("Role", "ClusterRole")
        for rule in manifest["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", (EVERY,))
    }


def _asked(log: Path) -> tuple[set[Right], set[tuple[Right, str]]]:
    """What was asked and answered, and what was refused for want of a right, with the name it was asked of."""
    used: set[Right] = set()
    refused: set[tuple[Right, str]] = set()
    for line in log.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["user"]["username"] != ACCOUNT or "objectRef" not in event:
            continue
        if "impersonatedUser" in event:
            # The right to the object was the caller's; the operator's was to ask as that one.
            used |= _impersonated(event["impersonatedUser"])
            continue
        named = event["objectRef"]
        resource = "/".join(filter(None, (named["resource"], named.get("subresource"))))
        right = (named.get("apiGroup", ""), resource, event["verb"])
        if event.get("responseStatus", {}).get("code") == 403:
            refused.add((right, named.get("name", EVERY)))
        else:
            used.add(right)
    return used, refused


def _impersonated(caller: dict[str, Any]) -> set[Right]:
    group, verb = "authentication.k8s.io", "impersonate"
    rights = {("", "serviceaccounts" if caller["username"].startswith(_SERVICE_ACCOUNT) else "users", verb)}
    if caller.get("groups"):
        rights.add(("", "groups", verb))
    if caller.get("uid"):
        rights.add((group, "uids", verb))
    return rights | {(group, f"userextras/{key}", verb) for key in caller.get("extra", ())}


def _table(granted: set[Right], used: set[Right]) -> list[str]:
    verbs: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for group, resource, verb in sorted(granted | used):
        right = (group, resource, verb)
        verbs[group, resource][verb] = "" if right in used else f" (not in this run: {SELDOM.get(right, OTHER)})"
    rows = [
        f"| {group or 'core'} | {resource} | {', '.join(verb + mark for verb, mark in found.items())} |"
        for (group, resource), found in verbs.items()
    ]
    return ["| group | resource | verbs |", "| --- | --- | --- |", *rows]
