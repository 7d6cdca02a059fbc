"""What a request may say: everything is checked, and what is wrong is said with what to do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import MultiDict

from scalable_topics_operator.gateway.parameters import PATH, Parameter, choice, read_values, switch, text, whole
from scalable_topics_operator.gateway.refusal import Refusal

SEGMENT = whole("segmentId", "a segment", 0, 99, place=PATH)
AT = whole("at", "a point", 1, 65535)
FORCE = switch("force", "go on")
KIND = choice("type", "a kind", ("STREAM", "QUEUE"), "STREAM")
NAME = text("name", "a name", place="query", longest=5, pattern="[a-z]+")
MORE = whole("more", "others", 0, 9, repeated=True)
NEEDED = whole("timestamp", "milliseconds", 0, 10, required=True)
ALL = (SEGMENT, AT, FORCE, KIND, NAME, MORE)


def _refused(query: list[tuple[str, str]], parameters: tuple[Parameter[object], ...] = ALL, segment: str = "0") -> str:  # type: ignore[assignment]
    with pytest.raises(Refusal) as refusal:
        read_values(parameters, {"segmentId": segment}, MultiDict(query))
    assert refusal.value.status == 400
    return refusal.value.reason


def test_values_are_read_by_parameter() -> None:
    query = MultiDict([("at", "7"), ("force", "True"), ("type", "QUEUE"), ("more", "1"), ("more", "2"), ("name", "ab")])
    values = read_values(ALL, {"segmentId": "3"}, query)
    assert (values.need(SEGMENT), values.get(AT), values.get(FORCE), values.get(KIND)) == (3, 7, True, "QUEUE")
    assert (values.all(MORE), values.get(NAME)) == ((1, 2), "ab")
    nothing = read_values(ALL, {"segmentId": "3"}, MultiDict())
    assert (nothing.get(AT), nothing.get(FORCE), nothing.all(MORE)) == (None, None, ())


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ([("At", "7")], "there is no query parameter 'At' here; the query may have at, force, more, name, type"),
        ([("at", "7"), ("at", "8")], "query parameter at is given 2 times; give it once"),
        ([("at", "0")], "query parameter at: '0' is no whole number between 1 and 65535"),
        ([("at", "65536")], "no whole number between"),
        ([("at", "7.0")], "no whole number"),
        ([("at", "\u0667")], "no whole number"),
        ([("at", "")], "no whole number"),
        ([("at", "9" * 4000)], "…' is no whole number"),
        ([("force", "yes")], "neither true nor false"),
        ([("type", "stream")], "is none of STREAM, QUEUE"),
        ([("name", "abcdef")], "must have between 1 and 5 characters"),
        ([("name", "AB")], "must be like [a-z]+"),
        ([("name", "ab\n")], "must be like"),
        ([("more", "1"), ("more", "x")], "query parameter more: 'x'"),
        ([("more", "1")] * 17, "query parameter more is given 17 times, of 16 at most"),
    ],
)
def test_what_is_wrong_is_said(query: list[tuple[str, str]], words: str) -> None:
    assert words in _refused(query)


def test_parts_of_the_path_are_checked_as_well() -> None:
    assert "path parameter segmentId: '-1' is no whole number between 0 and 99" in _refused([], segment="-1")


def test_what_is_needed_must_be_there_and_a_route_without_parameters_says_so() -> None:
    assert _refused([], (NEEDED,)) == "query parameter timestamp is missing: milliseconds"  # type: ignore[arg-type]
    assert "the query has no parameters" in _refused([("x", "1")], (SEGMENT,))  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.sampled_from(["at", "force", "type", "more", "name", "?"]), st.text()), max_size=4))
def test_any_query_is_read_or_refused_with_400(query: list[tuple[str, str]]) -> None:
    status = 200
    try:
        read_values(ALL, {"segmentId": "0"}, MultiDict(query))
    except Refusal as refusal:
        status = refusal.status
    assert status in (200, 400)
