"""What a user sees of every kind, and what is current by kstatus."""

from __future__ import annotations

from functools import partial

import pytest
import yaml

from tests.e2e.kstatus import status_of
from tests.e2e.kubectl import apply, kubectl, read_all, until
from tests.e2e.release import Release
from tests.e2e.report import KINDS_PART, Report
from tests.e2e.world import APPLICATIONS, ROOT, Toolbox, await_ready, connection, operate, operation, topic

pytestmark = [pytest.mark.whole, pytest.mark.timeout(600)]

TOPIC = "orders"
KINDS = ("stconn", "stopic", "segop", "stpolicy", "stsub")


def test_every_kind_tells_how_it_stands_in_a_line(release: Release, toolbox: Toolbox, report: Report) -> None:
    text = (ROOT / "examples" / "policies.yaml").read_text(encoding="utf-8")
    policies = [document for document in yaml.safe_load_all(text) if document]
    apply(connection(), topic(TOPIC), *policies, namespace=APPLICATIONS)
    kubectl("label", "stopic", TOPIC, "tier=gold", "--namespace", APPLICATIONS)
    await_ready("scalabletopic", TOPIC)
    operate(operation("split-0", TOPIC, type="Split", split={"segment": 0}))
    apply(
        {
            "apiVersion": "scalabletopics.io/v1alpha1",
            "kind": "ScalableTopicSubscription",
            "metadata": {"name": "billing"},
            "spec": {"scalableTopic": TOPIC, "subscription": "billing", "type": "Stream"},
        },
        namespace=APPLICATIONS,
    )
    # Nobody works on subscriptions yet: their object is taken, and says nothing.
    for kind in KINDS[:-1]:
        until(
            partial(_statuses, kind),
            lambda found: found == {"Current"},
            what=f"all of {kind} is current",
        )
    for kind in KINDS:
        shown = kubectl("get", kind, "--namespace", APPLICATIONS)
        assert len(shown.splitlines()) >= 2
        report.add(KINDS_PART, "```", f"$ kubectl get {kind}", shown.rstrip(), "```", "")


def _statuses(kind: str) -> set[str]:
    return {status_of(each) for each in read_all(kind, APPLICATIONS)}
