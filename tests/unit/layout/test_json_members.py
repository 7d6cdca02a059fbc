"""JSON texts of many values, read one by one."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import json_members
from scalable_topics.layout.json_fields import parse_json
from scalable_topics.layout.json_members import each_member

_LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=30
)
_OBJECTS = st.dictionaries(st.text(), _VALUES, max_size=4)


def members(found: Any, depth: int, *keys: str) -> list[tuple[tuple[str, ...], Any]]:
    """The same of what is decoded."""
    if len(keys) == depth:
        return [(keys, found)]
    if not isinstance(found, dict):
        return []
    return [one for key, value in found.items() for one in members(value, depth, *keys, key)]


def cut(text: str, part_length: int) -> list[str]:
    """In parts of a length; some of them empty."""
    return [part for at in range(0, len(text), part_length) for part in (text[at : at + part_length], "")]


@given(_OBJECTS, st.integers(1, 4), st.sampled_from([None, 2]), st.booleans(), st.integers(1, 200))
def test_members_are_those_that_the_whole_has(
    found: dict[str, Any], depth: int, indent: int, ascii_only: bool, part_length: int
) -> None:
    text = json.dumps(found, indent=indent, ensure_ascii=ascii_only)
    assert list(each_member(cut(f" {text}\n", part_length), depth)) == members(found, depth)


@pytest.mark.parametrize("number", ["15", "-15", "1.5", "1e5", "1E+5", "1.5e-7", "NaN", "-Infinity", "1" * 50])
def test_a_number_may_be_cut_anywhere(number: str) -> None:
    text = f'{{"a": {number}, "b": {number}}}'
    whole = repr(list(parse_json(text).values()))
    for at in range(1, len(text)):
        for parts in ([text[:at], text[at:]], [text[: at - 1], text[at - 1 : at], text[at:]], list(text)):
            assert repr([value for _, value in each_member(parts, 1)]) == whole, parts


def test_where_it_goes_wrong_is_said_in_the_whole_text() -> None:
    text = '{"n": {' + ", ".join(f'"{number}": 1' for number in range(1000)) + ', "x": ?}}'
    with pytest.raises(ValueError, match=f"at character {text.index('?')}"):
        list(each_member(cut(text, 50), 2))


@given(_OBJECTS, st.integers(1, 4), st.integers(1, 200), st.data())
def test_what_was_cut_off_or_changed_is_refused_as_the_whole_would_be(
    found: dict[str, Any], depth: int, part_length: int, data: st.DataObject
) -> None:
    text = json.dumps(found)
    at = data.draw(st.integers(0, len(text) - 1))
    broken = text[:at] + data.draw(st.sampled_from(["", "{", "}", ",", ":", '"', "x", " "])) + text[at + 1 :]
    try:
        expected = parse_json(broken)
    except ValueError:
        with pytest.raises(ValueError, match=r"\w"):
            list(each_member(cut(broken, part_length), depth))
    else:
        assert isinstance(expected, dict)
        # A key may be there twice: the last counts.
        assert dict(each_member(cut(broken, part_length), depth)) == dict(members(expected, depth))


@pytest.mark.parametrize("text", ["", "[]", "null", '"x"'])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no JSON object"):
        list(each_member([text], 4))


@pytest.mark.parametrize("text", ["{", '{"a"', '{"a":', '{"a":1', '{"a":1,}', '{"a" 1}', "{1:2}", '{"a":1} x', "{}{}"])
def test_what_is_not_whole_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|missing|behind its end"):
        list(each_member([text], 4))


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', '{"\\udfff": 1}', '{"a":"\\ud800","b":' * 100_000])
def test_halves_of_characters_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        list(each_member([text], 4))


@pytest.mark.parametrize("text", ['{"a":' + "[" * 100_000, '{"a":' * 100_000, '{"a":"x","b":' * 100_000])
def test_what_is_nested_without_end_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="too deeply"):
        list(each_member([text], 4))


def test_one_value_is_in_memory_at_a_time() -> None:
    text = json.dumps({"n": {str(number): {"rates": [number + 0.5] * 50} for number in range(5_000)}})
    read = _most_bytes(lambda: sum(1 for _ in each_member(_lazily(text, 10_000), 2)))
    assert read * 20 < _most_bytes(lambda: json.loads(text))


def test_a_value_as_large_as_the_text_is_not_tried_with_every_part() -> None:
    """Which would take the square of the time."""
    tried: list[int] = []
    decode = json_members._decode

    def noting(text: str, at: int) -> tuple[Any, int]:
        tried.append(len(text) - at)
        return decode(text, at)

    text = json.dumps({"a": "x" * 1_000_000})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_members, "_decode", noting)
        assert list(each_member(_lazily(text, 100), 1)) == [(("a",), "x" * 1_000_000)]
    assert sum(tried) < 4 * len(text)


def _lazily(text: str, part_length: int) -> Iterator[str]:
    return (text[at : at + part_length] for at in range(0, len(text), part_length))


def _most_bytes(work: Any) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
