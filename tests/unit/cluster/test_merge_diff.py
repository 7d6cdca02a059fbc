"""JSON merge patches that carry only what differs."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.cluster.merge_diff import merge_diff

scalars = st.one_of(st.integers(), st.text(max_size=5), st.booleans())
documents: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from("abcd"),
    st.recursive(
        scalars | st.lists(scalars, max_size=3),
        lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


def merge(document: Any, patch: dict[str, Any]) -> dict[str, Any]:
    """RFC 7386, as the API server applies it."""
    result = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merge(result.get(key), value)
        else:
            result[key] = value
    return result


@given(documents, documents)
def test_the_patch_makes_one_of_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert merge(before, merge_diff(before, after)) == after


@given(documents)
def test_equal_documents_need_no_patch(document: dict[str, Any]) -> None:
    """Hazard C24: an empty patch is never sent."""
    assert merge_diff(document, document) == {}


def test_only_what_differs_is_in_it() -> None:
    before = {"layout": {"epoch": 1, "segments": [1, 2]}, "topic": "t", "operation": {"id": "x"}}
    after = {"layout": {"epoch": 2, "segments": [1, 2]}, "topic": "t"}
    assert merge_diff(before, after) == {"layout": {"epoch": 2}, "operation": None}
