"""What is said of what an uninstalled operator would leave behind."""

from __future__ import annotations

from scalable_topics_operator.uninstall_check import SHOWN, Left, report


def test_nothing_is_left() -> None:
    assert report(Left()) == "Nothing is left that needs the operator."


def test_topics_are_told_by_namespace_and_not_all_of_many() -> None:
    many = [f"topic-{number:03}" for number in range(SHOWN + 2)]
    lines = report(Left(topics={"billing": ["invoices"], "shop": many})).splitlines()
    assert lines[0].startswith("23 ScalableTopic(s) are there, which cannot be deleted without the operator")
    assert lines[1] == "  namespace billing, 1: invoices"
    assert lines[2] == f"  namespace shop, 22: {', '.join(many[:SHOWN])} and 2 more"
    assert "delete scalabletopic NAME" in lines[-1]


def test_pipelines_that_go_on_are_told() -> None:
    text = report(Left(pipelines={"shop": ["pulsar"]}))
    assert text.startswith("1 connection(s) have a SparkApplication as load pipeline, which goes on running:\n")
    assert "  namespace shop, 1: pulsar" in text
    assert "ScalableTopic(s)" not in text
