"""What `spec.subscriptions` asks of the cursors (R16, R18)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scalable_topics_operator.operations.context import DeclaredSubscription
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase, SubscriptionState
from scalable_topics_operator.operations.subscriptions import wanted_subscriptions

KEPT = DeclaredSubscription()
AT_LATEST = DeclaredSubscription(latest=True)
GOES_WITH_ENTRY = DeclaredSubscription(delete_with_entry=True)


def _state(phase: SubscriptionPhase, *, latest: bool = False, delete_with_entry: bool = False) -> SubscriptionState:
    return SubscriptionState("reader", phase, latest, delete_with_entry)


CREATING = _state(SubscriptionPhase.CREATING)
ACTIVE = _state(SubscriptionPhase.ACTIVE)
LOST = _state(SubscriptionPhase.CURSOR_LOST)
ASKED_FOR = replace(ACTIVE, requested=True)


@pytest.mark.parametrize(
    ("recorded", "declared", "wanted"),
    [
        pytest.param(None, None, None, id="nothing"),
        pytest.param(None, KEPT, CREATING, id="a new entry"),
        pytest.param(None, AT_LATEST, _state(SubscriptionPhase.CREATING, latest=True), id="a new entry at latest"),
        pytest.param(CREATING, KEPT, CREATING, id="its cursors are being made"),
        pytest.param(ACTIVE, KEPT, ACTIVE, id="nothing to do"),
        pytest.param(ACTIVE, AT_LATEST, ACTIVE, id="R18: where it began is not changed later"),
        pytest.param(
            ACTIVE,
            GOES_WITH_ENTRY,
            _state(SubscriptionPhase.ACTIVE, delete_with_entry=True),
            id="another deletion policy is recorded",
        ),
        pytest.param(LOST, KEPT, LOST, id="R17: a lost cursor is not silently made again"),
        pytest.param(ACTIVE, None, None, id="R16: a removed entry is only forgotten"),
        pytest.param(ASKED_FOR, KEPT, ASKED_FOR, id="R32: it is declared besides"),
        pytest.param(
            _state(SubscriptionPhase.ACTIVE, delete_with_entry=True),
            None,
            _state(SubscriptionPhase.DELETING, delete_with_entry=True),
            id="R16: a removed entry that says so deletes",
        ),
        pytest.param(
            _state(SubscriptionPhase.DELETING, delete_with_entry=True),
            None,
            _state(SubscriptionPhase.DELETING, delete_with_entry=True),
            id="it is still being deleted",
        ),
        pytest.param(
            _state(SubscriptionPhase.DELETING, delete_with_entry=True),
            KEPT,
            _state(SubscriptionPhase.DELETING, delete_with_entry=True),
            id="R16: declared again, it is deleted first",
        ),
    ],
)
def test_r16_what_is_wanted_of_a_subscription(
    recorded: SubscriptionState | None, declared: DeclaredSubscription | None, wanted: SubscriptionState | None
) -> None:
    found = wanted_subscriptions({"reader": recorded} if recorded else {}, {"reader": declared} if declared else {})
    assert found == ({"reader": wanted} if wanted else {})


def test_subscriptions_do_not_meddle_with_each_other() -> None:
    recorded = {"kept": SubscriptionState("kept", SubscriptionPhase.ACTIVE, latest=False, delete_with_entry=False)}
    found = wanted_subscriptions(recorded, {"kept": KEPT, "new": AT_LATEST})
    assert found == {
        "kept": recorded["kept"],
        "new": SubscriptionState("new", SubscriptionPhase.CREATING, latest=True, delete_with_entry=False),
    }
