"""Objects are kept small, and stay what they are."""

from __future__ import annotations

import copy
import json
import tracemalloc
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.cluster.compact_body import compact

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)
_METADATA = {"name": "orders", "uid": "u", "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]}


@given(spec=_VALUES, status=_VALUES)
def test_an_object_is_the_same_but_for_managed_fields(spec: Any, status: Any) -> None:
    body = {"metadata": _METADATA, "spec": spec, "status": status}
    before = copy.deepcopy(body)
    metadata = {"name": "orders", "uid": "u"}
    assert compact(body) == {"metadata": metadata, "spec": spec, "status": status}
    assert body == before, "whose it is may need all of it"


def test_a_field_of_that_name_elsewhere_is_kept() -> None:
    body = {"metadata": {}, "spec": {"managedFields": ["mine"]}}
    assert compact(body) == body


def test_a_thousand_objects_share_what_is_the_same_in_them() -> None:
    condition = {"type": "Ready", "status": "True", "reason": "Reconciled", "message": ""}
    text = json.dumps({"metadata": _METADATA, "status": {"conditions": [condition] * 6}})

    def kept_bytes(*, small: bool) -> int:
        tracemalloc.start()
        kept = [compact(json.loads(text)) if small else json.loads(text) for _ in range(1000)]
        assert len(kept) == 1000
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return size

    assert kept_bytes(small=True) < 0.6 * kept_bytes(small=False)
