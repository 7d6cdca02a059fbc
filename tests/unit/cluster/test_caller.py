"""R32: a caller in headers, as an API server takes them."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.cluster.caller import Caller, impersonation_headers


def test_all_that_is_known_of_a_caller_is_said() -> None:
    caller = Caller(
        "system:serviceaccount:shop:reader",
        uid="1234",
        groups=("system:serviceaccounts", "system:authenticated"),
        extra={"authentication.kubernetes.io/credential-id": ["JTI=1"], "Team": ["shop", "café"]},
    )
    assert impersonation_headers(caller) == (
        ("Impersonate-User", "system:serviceaccount:shop:reader"),
        ("Impersonate-Uid", "1234"),
        ("Impersonate-Group", "system:serviceaccounts"),
        ("Impersonate-Group", "system:authenticated"),
        ("Impersonate-Extra-authentication.kubernetes.io%2fcredential-id", "JTI=1"),
        ("Impersonate-Extra-%54eam", "shop"),
        ("Impersonate-Extra-%54eam", "café"),
    )


def test_what_is_not_known_is_not_said() -> None:
    assert impersonation_headers(Caller("alice")) == (("Impersonate-User", "alice"),)


@pytest.mark.parametrize(
    "caller",
    [
        Caller("alice\r\nImpersonate-Group: system:masters"),
        Caller("alice", groups=("a\nb",)),
        Caller("alice", extra={"key": ["a\x00b"]}),
    ],
)
def test_nothing_is_smuggled_in(caller: Caller) -> None:
    with pytest.raises(ValueError, match="cannot be written in a header"):
        impersonation_headers(caller)


@given(key=st.text(min_size=1))
def test_every_key_comes_back_from_a_name_that_has_lost_its_capitals(key: str) -> None:
    ((_, _), (name, _)) = impersonation_headers(Caller("alice", extra={key: ["x"]}))
    assert name.isascii()
    quoted = name.removeprefix("Impersonate-Extra-")
    assert unquote(quoted.lower()) == key
    assert not any(character in '()<>@,;:\\"/[]?={} \t' for character in quoted)
