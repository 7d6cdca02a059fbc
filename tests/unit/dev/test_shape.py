"""What an instance consists of: which brokers, their ports, and what is kept of it in a file."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from dev.broker_settings import Profile, PulsarLine
from dev.errors import DevError
from dev.instance import InstanceState, Shape

NATIVE_PORTS = ["native-0-service", "native-0-web"]


def test_a_native_broker_has_ports_of_its_own_beside_those_of_the_others() -> None:
    shape = Shape(kubernetes=False, native=True)
    assert shape.port_names() == ["broker-0-service", "broker-0-web", *NATIVE_PORTS]
    assert Shape(kubernetes=False, brokers=0, native=True).port_names() == NATIVE_PORTS


@pytest.mark.parametrize(
    ("shape", "lines"),
    [
        (Shape(), [PulsarLine.FOUR]),
        (Shape(native=True), [PulsarLine.FOUR, PulsarLine.FIVE]),
        (Shape(pulsar=PulsarLine.FIVE), [PulsarLine.FIVE]),
        (Shape(brokers=0, native=True), [PulsarLine.FIVE]),
        (Shape(brokers=0, pulsar=PulsarLine.FIVE), []),
    ],
)
def test_which_pulsar_is_needed(shape: Shape, lines: list[PulsarLine]) -> None:
    assert list(shape.lines) == lines


def test_brokers_of_pulsar_5_have_no_native_one_beside_them() -> None:
    with pytest.raises(DevError, match="native themselves"):
        Shape(pulsar=PulsarLine.FIVE, native=True)


def test_a_shape_says_which_brokers_it_has() -> None:
    assert str(Shape(native=True)).endswith("1 broker(s) of Pulsar 4 with a native one beside, profile ordinary")
    assert str(Shape(brokers=2, pulsar=PulsarLine.FIVE)).endswith("2 broker(s) of Pulsar 5, profile ordinary")


@pytest.mark.parametrize(
    "shape", [Shape(native=True), Shape(False, 2, Profile.ROLLOVER, pulsar=PulsarLine.FIVE), Shape(node=True)]
)
def test_a_state_is_read_as_it_was_written(tmp_path: Path, shape: Shape) -> None:
    state = InstanceState(shape, {"broker-0-web": 1})
    state.write(tmp_path / "instance.json")
    assert InstanceState.read(tmp_path / "instance.json") == state


def test_a_state_from_before_there_was_pulsar_5_is_read(tmp_path: Path) -> None:
    shape = {
        name: value for name, value in asdict(Shape()).items() if name not in ("pulsar", "native", "node", "spark")
    }
    (tmp_path / "instance.json").write_text(json.dumps({"shape": shape, "ports": {}}))
    assert InstanceState.read(tmp_path / "instance.json") == InstanceState(Shape())
