"""How a broker of Pulsar 5 is reached goes through the environment beside how the others are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dev.access import PulsarAccess
from dev.errors import DevError

TOKENS = (Path("/t/superuser"), Path("/t/namespace-admin"), Path("/t/client"))
MAIN = PulsarAccess("http://a:1", "pulsar://a:2,a:4", ("http://a:1", "http://a:3"), *TOKENS)
BESIDE = PulsarAccess("http://b:1", "pulsar://b:2", ("http://b:1",), *TOKENS)


@pytest.mark.parametrize("native", [BESIDE, MAIN])
def test_both_are_read_as_they_were_told(native: PulsarAccess) -> None:
    environment = MAIN.environment() | native.native_environment()
    assert PulsarAccess.from_environment(environment) == MAIN
    assert PulsarAccess.native_from_environment(environment) == native


def test_a_native_broker_may_be_alone() -> None:
    assert PulsarAccess.native_from_environment(BESIDE.native_environment()) == BESIDE
    with pytest.raises(DevError, match="PULSAR_ADMIN_URL is not set"):
        PulsarAccess.from_environment(BESIDE.native_environment())


def test_there_need_be_none() -> None:
    assert PulsarAccess.native_from_environment(MAIN.environment()) is None


def test_a_broker_that_is_named_alone_is_the_only_one() -> None:
    environment = MAIN.native_environment()
    del environment["PULSAR_NATIVE_BROKER_ADMIN_URLS"]
    assert PulsarAccess.native_from_environment(environment) == replace(MAIN, broker_admin_urls=("http://a:1",))
