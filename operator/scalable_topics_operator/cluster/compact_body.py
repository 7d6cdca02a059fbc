"""Objects in as little memory as they can be kept in: every replica keeps all of its installation."""

from __future__ import annotations

import sys
from typing import Any

from scalable_topics_operator.cluster.kube_client import Body

_LONGEST_SHARED = 40
"""Characters of the longest text that is kept once for all objects: names of states and reasons, ranges, times."""


def compact(body: Body) -> Body:
    """The same object without `metadata.managedFields`, with keys and short texts that it shares with all others.

    Of what a parser makes of 10,000 objects, most are keys and words that are the same in each of them, and managed
    fields, which nobody here reads; a merge patch leaves them as they are.
    """
    metadata = {key: one for key, one in body["metadata"].items() if key != "managedFields"}
    found: Body = _shared({**body, "metadata": metadata})
    return found


def _shared(value: Any) -> Any:
    if isinstance(value, dict):
        return {sys.intern(key): _shared(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_shared(one) for one in value]
    if type(value) is str and len(value) <= _LONGEST_SHARED:
        return sys.intern(value)
    return value
