"""What examples/fastapi_producer.py says of every error of the library: each is answered, and only what is not stored
is to be sent again.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from fastapi import Request

from scalable_topics import sdk
from scalable_topics.sdk import ClientError, SendError, SendOutcomeUnknownError, SessionRefusedError

_EXAMPLE = Path(__file__).parents[3] / "examples" / "fastapi_producer.py"
# A consumer's.
_OTHERS = {SessionRefusedError}
_ERRORS: set[type[ClientError]] = {
    found
    for name in sdk.__all__
    if isinstance(found := getattr(sdk, name), type) and issubclass(found, ClientError) and found not in _OTHERS
}


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location(_EXAMPLE.stem, _EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("error", sorted(_ERRORS, key=repr))
async def test_only_what_is_not_stored_and_may_be_later_is_to_be_sent_again(
    example: Any, error: type[ClientError]
) -> None:
    request = Request({"type": "http", "method": "POST", "path": "/orders", "headers": []})
    raised = error("the order and the reason")
    answer = await example.explain(request, raised)
    expected = {SendError: (500, None), SendOutcomeUnknownError: (504, None)}.get(error, (503, "5"))
    assert (answer.status_code, answer.headers.get("Retry-After")) == expected
    assert json.loads(answer.body) == {"detail": str(raised)}
    assert "the order and the reason" in str(raised)
