"""R1, R11: claims and segment records as topic properties."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import HashRange
from scalable_topics_operator.backends.claim_properties import CLAIM_KEY, claim_of, claim_properties, user_properties
from scalable_topics_operator.backends.classic.segment_record import RECORD_KEY, record_of, record_properties
from scalable_topics_operator.operations.errors import BackendRefused
from scalable_topics_operator.operations.protocols import Claim, SegmentRecord
from tests.unit.layout.strategies import hash_ranges, unhurried, unknown_fields

COUNT = st.integers(0, 2**63 - 1)
TEXT = st.text(max_size=50)
claims = st.builds(Claim, TEXT, TEXT, TEXT, TEXT, TEXT, st.sampled_from(["Classic", "Native"]), st.booleans())
ids = st.lists(COUNT, max_size=5).map(tuple)
records = st.builds(
    SegmentRecord, COUNT, hash_ranges(), ids, COUNT, COUNT, COUNT, COUNT, TEXT, TEXT, ids, COUNT, claims
)

CLAIM = Claim("installation", "cluster-uid", "uid", "ns", "name", "Classic")
RECORD = SegmentRecord(3, HashRange(0, 0x7FFF), (0,), 4, 1, 2, 1000, "Split", "op-1", (3, 4), 5, CLAIM)


@unhurried
@given(records, unknown_fields)
def test_r11_a_record_survives_the_round_trip_and_later_fields_do_not_disturb(
    record: SegmentRecord, unknown: dict[str, Any]
) -> None:
    properties = record_properties(record)
    assert record_of({**properties, "users": "own"}) == record
    (text,) = properties.values()
    later = {**unknown, **json.loads(text)}
    later["claim"] = {**unknown, **later["claim"]}
    assert record_of({RECORD_KEY: json.dumps(later)}) == record


@unhurried
@given(claims, st.dictionaries(TEXT, TEXT, max_size=4))
def test_r1_a_claim_survives_the_round_trip_beside_the_users_properties(claim: Claim, own: dict[str, str]) -> None:
    properties = claim_properties(claim, own)
    assert claim_of(properties) == claim
    assert user_properties(properties) == own


def test_topics_of_others_carry_nothing() -> None:
    assert record_of({"a": "b"}) is None
    assert claim_of({"a": "b"}) is None


def test_the_format_is_a_contract() -> None:
    """Released operators read it: fields may be added, never renamed."""
    assert json.loads(record_properties(RECORD)[RECORD_KEY]) == {
        "v": 1,
        "id": 3,
        "range": "0000-7fff",
        "parents": [0],
        "buckets": 4,
        "mergeDepth": 1,
        "createdAtEpoch": 2,
        "createdAtMs": 1000,
        "createdBy": "Split",
        "operation": "op-1",
        "siblings": [3, 4],
        "nextId": 5,
        "claim": {
            "v": 1,
            "installation": "installation",
            "kubernetes": "cluster-uid",
            "uid": "uid",
            "namespace": "ns",
            "name": "name",
            "backend": "Classic",
            "released": False,
        },
    }
    assert RECORD_KEY == "scalabletopics.io/segment"
    assert CLAIM_KEY == "scalabletopics.io/claim"


@pytest.mark.parametrize("key", [CLAIM_KEY, RECORD_KEY, "scalabletopics.io/x"])
def test_users_cannot_forge_our_properties(key: str) -> None:
    with pytest.raises(BackendRefused, match="reserved"):
        claim_properties(CLAIM, {key: "x"})


def _damaged(**fields: Any) -> str:
    return json.dumps({**json.loads(record_properties(RECORD)[RECORD_KEY]), **fields})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        "{",
        _damaged(id=-1),
        _damaged(id="3"),
        _damaged(id=True),
        _damaged(range="0-1"),
        _damaged(range="8000-0000"),
        _damaged(parents=3),
        _damaged(parents=[-1]),
        _damaged(operation=None),
        _damaged(claim={}),
        _damaged(claim=None),
    ],
)
def test_a_damaged_record_is_refused_and_never_guessed(text: str) -> None:
    with pytest.raises(BackendRefused, match="carries a record that this release cannot read"):
        record_of({RECORD_KEY: text})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"installation":1}'])
def test_r1_a_damaged_claim_is_somebodys_and_not_none(text: str) -> None:
    with pytest.raises(BackendRefused, match="carries a claim that this release cannot read"):
        claim_of({CLAIM_KEY: text})
