"""Messages of the layout topic: reading them, and which wins (R12, R20)."""

from typing import Any

import pytest

from scalable_topics.sdk import LayoutMessageError
from scalable_topics.sdk.layout_message import LayoutMessage, Routing, parse_layout_message
from tests.unit.sdk.vectors import cases

MESSAGES = cases("messages.json")


@pytest.mark.parametrize("case", [case for case in MESSAGES if case["valid"]], ids=lambda case: case["name"])
def test_valid_messages_are_read(case: dict[str, Any]) -> None:
    message = parse_layout_message(case["body"])
    assert (message.epoch, message.step) == (case["epoch"], case["step"])
    assert [segment.segment_id for segment in message.active] == case["active"]
    assert {str(key): dict(value) for key, value in message.settled.items()} == case["settled"]
    assert message.routing == case.get("routing", "Ranges")
    found = message.announcement
    told = case["announcement"]
    if told is None:
        assert found is None
    else:
        assert found is not None
        assert (found.operation, list(found.parents)) == (told["operation"], told["parents"])
        assert [child.segment_id for child in found.children] == told["children"]
        assert found.hold_seconds == told["holdSeconds"]


@pytest.mark.parametrize("case", [case for case in MESSAGES if not case["valid"]], ids=lambda case: case["name"])
def test_others_are_refused_with_the_reason(case: dict[str, Any]) -> None:
    with pytest.raises(LayoutMessageError, match=case["because"]):
        parse_layout_message(case["body"])


@pytest.mark.parametrize("case", cases("ordering.json"), ids=lambda case: case["name"])
def test_which_message_wins(case: dict[str, Any]) -> None:
    """R12: epochs are compared within one incarnation only."""
    current = None if case["current"] is None else LayoutMessage(topic="t", segments={}, **case["current"])
    incoming = LayoutMessage(topic="t", segments={}, **case["incoming"])
    assert incoming.supersedes(current) is (case["wins"] == "incoming")


def test_a_step_alone_is_no_new_layout() -> None:
    message = parse_layout_message(MESSAGES[0]["body"])
    later = LayoutMessage("t", message.incarnation, message.epoch, message.step + 1, 1, {})
    assert not later.changes_layout(message)
    assert LayoutMessage("t", "uid.1", message.epoch, 0, 1, {}).changes_layout(message)
    assert LayoutMessage("t", message.incarnation, message.epoch + 1, 0, 1, {}).changes_layout(message)
    assert message.changes_layout(None)


def test_R25_another_routing_is_a_new_layout() -> None:
    """A migrated topic has epoch 0, as it had before (pip-475 §2.4)."""
    before = LayoutMessage("t", "uid.0", 0, 1001, 1, {}, routing=Routing.MODULO)
    assert LayoutMessage("t", "uid.0", 0, 1002, 1, {}).changes_layout(before)
    assert not LayoutMessage("t", "uid.0", 0, 1002, 1, {}, routing=Routing.MODULO).changes_layout(before)
