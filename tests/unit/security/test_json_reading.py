"""JSON is parsed in one place, so that what is nested without end is refused wherever it comes from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scalable_topics.layout.json_fields import MALFORMED, as_int, parse_json, unknown_fields
from tests.support.hostile import NESTED_TEXTS, OTHER_TEXTS

ROOT = Path(__file__).parents[3]
PACKAGES = ("client", "operator", "spark")
THE_PLACE = ROOT / "client/scalable_topics/layout/json_fields.py"


def test_nothing_else_parses_json() -> None:
    others = [
        str(file.relative_to(ROOT))
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("*.py"))
        if file != THE_PLACE and re.search(r"\bjson\.loads?\b", file.read_text(encoding="utf-8"))
    ]
    assert others == [], "use scalable_topics.layout.json_fields.parse_json"


@pytest.mark.parametrize("text", [*NESTED_TEXTS, *OTHER_TEXTS], ids=lambda text: repr(text[:12]))
def test_whatever_comes_is_read_or_refused_with_one_error(text: bytes) -> None:
    refusal = ""
    try:
        found = parse_json(text)
    except ValueError:
        return
    try:
        as_int(found, "it")
        unknown_fields({"it": found}, frozenset())
    except ValueError as error:
        refusal = str(error)
    assert len(refusal) < 200


def test_what_is_nested_deeply_is_named_and_no_surprise() -> None:
    deep: list[object] = []
    for _ in range(2000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deeply"):
        as_int(deep, "epoch")
    with pytest.raises(ValueError, match="nested too deeply"):
        unknown_fields({"later": deep}, frozenset())
    assert RecursionError in MALFORMED


@pytest.mark.parametrize("text", ['["\\ud83d"]', '{"\\uDC00": 1}', '"\\ude00\\ud83d"'])
def test_halves_of_characters_are_refused(text: str) -> None:
    for given in (text, text.encode()):
        with pytest.raises(ValueError, match="surrogates not allowed"):
            parse_json(given)


@pytest.mark.parametrize(
    "text", [b'"\xed\xa0\x80"', '"\\ud800"'.encode("utf-16"), '"\ud800"'.encode("utf-16-le", "surrogatepass")]
)
def test_halves_of_characters_are_refused_in_any_encoding(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"surrogate|can't decode"):
        parse_json(text)


def test_json_is_read_in_every_encoding_that_it_may_have() -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"):
        assert parse_json('{"a": "\N{GRINNING FACE}"}'.encode(encoding)) == {"a": "\N{GRINNING FACE}"}


def test_characters_of_two_halves_are_read() -> None:
    assert parse_json('"\\ud83d\\ude00"') == "\N{GRINNING FACE}"
    assert parse_json(r'"\\ud800"') == r"\ud800", "a backslash that was escaped itself"
