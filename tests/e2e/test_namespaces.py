"""An operator that watches some namespaces has rights there and nowhere else, and leaves others alone."""

from __future__ import annotations

import pytest

from tests.e2e.kubectl import apply, exists, helm, kubectl, read, read_all, until
from tests.e2e.release import NAME, NAMESPACE, Release, Values
from tests.e2e.world import APPLICATIONS, Toolbox, await_ready, connection, operate, operation, topic

pytestmark = [pytest.mark.whole, pytest.mark.timeout(900)]

ELSEWHERE = "elsewhere"


@pytest.fixture(scope="module")
def values() -> Values:
    return {"watchNamespaces": [APPLICATIONS]}


def test_topics_of_its_namespaces_are_kept_and_others_are_not_touched(release: Release, toolbox: Toolbox) -> None:
    apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ELSEWHERE}})
    apply(connection(), topic("strange"), namespace=ELSEWHERE)
    apply(connection(), topic("own"), namespace=APPLICATIONS)
    await_ready("scalabletopic", "own")
    operate(operation("split-own", "own", type="Split", split={"segment": 0}, ttlSecondsAfterFinished=10))
    until(lambda: exists("segop", "split-own", APPLICATIONS), lambda there: not there, what="its time is over")
    strange = read("scalabletopic", "strange", ELSEWHERE)
    assert "status" not in strange
    assert "finalizers" not in strange["metadata"]
    account = f"--as=system:serviceaccount:{NAMESPACE}:{NAME}"
    rights = [
        kubectl("auth", "can-i", "list", "scalabletopics.scalabletopics.io", account, "--namespace", namespace)
        for namespace in (APPLICATIONS,)
    ]
    assert rights == ["yes\n"]
    assert not [each for each in read_all("clusterroles") if _reads_topics(each, NAME)]
    said = helm("test", NAME, "--namespace", NAMESPACE, "--timeout", "2m")
    assert "Phase:          Succeeded" in said
    kubectl("delete", "namespace", ELSEWHERE, "--timeout=60s")


def _reads_topics(role: dict[str, object], name: str) -> bool:
    rules = role.get("rules") or []
    assert isinstance(rules, list)
    return name in str(role["metadata"]) and any("scalabletopics.io" in rule["apiGroups"] for rule in rules)
