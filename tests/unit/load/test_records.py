"""Load records and pulses: what is written is read, and what is none is refused (R35)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.autoscale.load import Rates
from scalable_topics_operator.load.records import (
    Pulse,
    SegmentRecord,
    decode_pulse,
    decode_record,
    encode_pulse,
    encode_record,
)

_TIMES = st.integers(0, 2**53)
_RATES = st.floats(0, 1e12)
_RECORDS = st.one_of(
    st.builds(SegmentRecord, st.text(), _TIMES),
    st.builds(
        SegmentRecord,
        st.text(),
        _TIMES,
        st.builds(Rates, _RATES, _RATES, _RATES, _RATES),
        st.dictionaries(st.text(), _TIMES),
        _TIMES,
        st.none() | st.tuples(_TIMES, st.builds(Rates, _RATES, _RATES, _RATES, _RATES)),
    ),
)
_PULSES = st.builds(Pulse, _TIMES, _RATES, st.booleans(), _TIMES, st.dictionaries(st.text(), st.text()))


@given(_RECORDS)
def test_records_are_read_as_they_were_written(record: SegmentRecord) -> None:
    assert decode_record(encode_record(record)) == record


@given(_PULSES)
def test_pulses_are_read_as_they_were_written(pulse: Pulse) -> None:
    assert decode_pulse(encode_pulse(pulse)) == pulse


@pytest.mark.parametrize(
    "message", [b"", b"x", b"[]", b'{"v":2}', b'{"v":1}', b'{"v":1,"broker":"b","sampledAtMs":[]}']
)
def test_what_is_none_is_refused(message: bytes) -> None:
    for decode in (decode_record, decode_pulse):
        with pytest.raises(ValueError, match=r"\w"):
            decode(message)
