"""Whose a name is (R1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scalable_topics_operator.operations.claims import Verdict, judge_name, why_lost
from scalable_topics_operator.operations.protocols import Claim, NameState
from tests.unit.operations.builders import CLAIM

OTHER_OBJECT = replace(CLAIM, resource_uid="uid-2", resource_name="invoices")
OTHER_INSTALLATION = replace(OTHER_OBJECT, installation_id="installation-2")
OTHER_KUBERNETES = replace(CLAIM, kubernetes_uid="kubernetes-2")
NATIVE = replace(CLAIM, backend="Native")


def _claimed(claim: Claim) -> NameState:
    return NameState(exists=True, claim=claim, terminated=True)


@pytest.mark.parametrize(
    ("name", "owner_alive", "adopt", "verdict", "reason"),
    [
        pytest.param(NameState(exists=False), False, False, Verdict.FREE, "", id="nothing there"),
        pytest.param(NameState(exists=False), True, True, Verdict.FREE, "", id="nothing there, adopt"),
        pytest.param(NameState(exists=True), False, True, Verdict.REFUSED, "NameTaken", id="an ordinary topic"),
        pytest.param(
            NameState(exists=True, partitions=3), False, True, Verdict.REFUSED, "NameTaken", id="a partitioned topic"
        ),
        pytest.param(_claimed(CLAIM), True, False, Verdict.OURS, "", id="our claim"),
        pytest.param(_claimed(CLAIM), False, True, Verdict.OURS, "", id="our claim, whatever else"),
        pytest.param(
            _claimed(replace(CLAIM, released=True)), False, False, Verdict.OURS, "", id="our claim, released meanwhile"
        ),
        pytest.param(_claimed(OTHER_OBJECT), True, False, Verdict.REFUSED, "Conflict", id="another object"),
        pytest.param(_claimed(OTHER_OBJECT), True, True, Verdict.REFUSED, "Conflict", id="another object, adopt"),
        pytest.param(_claimed(OTHER_OBJECT), False, False, Verdict.RECOVERABLE, "", id="an object that is gone"),
        pytest.param(
            _claimed(replace(OTHER_OBJECT, released=True)), True, False, Verdict.RECOVERABLE, "", id="a released claim"
        ),
        pytest.param(
            _claimed(OTHER_INSTALLATION), False, False, Verdict.REFUSED, "ClaimedElsewhere", id="another installation"
        ),
        pytest.param(
            _claimed(replace(OTHER_INSTALLATION, released=True)),
            False,
            False,
            Verdict.REFUSED,
            "ClaimedElsewhere",
            id="another installation, released",
        ),
        pytest.param(_claimed(OTHER_INSTALLATION), True, True, Verdict.ADOPTABLE, "", id="another one, adopt"),
        pytest.param(
            _claimed(OTHER_KUBERNETES),
            False,
            False,
            Verdict.REFUSED,
            "ClaimedElsewhere",
            id="the same uid in another Kubernetes cluster",
        ),
        pytest.param(_claimed(OTHER_KUBERNETES), False, True, Verdict.ADOPTABLE, "", id="another cluster, adopt"),
        pytest.param(_claimed(NATIVE), True, True, Verdict.REFUSED, "BackendMismatch", id="R2: another backend"),
    ],
)
def test_r1_a_name_is_judged(name: NameState, owner_alive: bool, adopt: bool, verdict: Verdict, reason: str) -> None:
    judgement = judge_name(name, CLAIM, owner_alive=owner_alive, adopt=adopt)
    assert (judgement.verdict, judgement.reason) == (verdict, reason)
    assert bool(judgement.message) == (verdict is Verdict.REFUSED)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (NameState(exists=True, partitions=3), "a partitioned topic (3 partitions)"),
        (NameState(exists=True), "spec.migrateFrom"),
        (_claimed(OTHER_OBJECT), "ScalableTopic team/invoices"),
        (_claimed(OTHER_INSTALLATION), "set spec.adopt: true"),
        (_claimed(NATIVE), "created with backend Native and keeps it; the connection now gives Classic"),
    ],
)
def test_r1_a_refusal_says_what_to_do(name: NameState, says: str) -> None:
    assert says in judge_name(name, CLAIM, owner_alive=True, adopt=False).message


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        pytest.param(NameState(exists=False), False, id="a missing claim is put back"),
        pytest.param(NameState(exists=True), False, id="a topic without a claim is claimed again"),
        pytest.param(_claimed(CLAIM), False, id="ours"),
        pytest.param(_claimed(replace(CLAIM, released=True)), False, id="ours, released"),
        pytest.param(_claimed(OTHER_OBJECT), True, id="another object's"),
        pytest.param(_claimed(replace(OTHER_OBJECT, released=True)), False, id="released late by our predecessor"),
        pytest.param(_claimed(OTHER_INSTALLATION), True, id="adopted by another installation"),
        pytest.param(
            _claimed(replace(OTHER_INSTALLATION, released=True)), True, id="adopted and then released elsewhere"
        ),
    ],
)
def test_r1_a_topic_that_was_taken_over_is_left_alone(name: NameState, lost: bool) -> None:
    assert bool(why_lost(name, CLAIM)) == lost
