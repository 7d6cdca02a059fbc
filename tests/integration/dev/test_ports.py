"""Ports are free, nobody else's, and stay so while their server is down."""

import socket
from pathlib import Path

import pytest

from dev import ports
from dev.errors import DevError
from dev.ports import LOOPBACK, PortReservations, port_range


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    return tmp_path / "ports"


def owner(tmp_path: Path, name: str) -> Path:
    file = tmp_path / name
    file.touch()
    return file


def only_four_ports(monkeypatch: pytest.MonkeyPatch) -> range:
    first = free_run_of_four()
    monkeypatch.setattr(ports, "port_range", lambda _ephemeral: (first, first + 3))
    return range(first, first + 4)


def free_run_of_four() -> int:
    for first in range(20_000, 30_000, 4):
        candidates = [socket.socket() for _ in range(4)]
        try:
            for offset, candidate in enumerate(candidates):
                candidate.bind((LOOPBACK, first + offset))
        except OSError:
            continue
        finally:
            for candidate in candidates:
                candidate.close()
        return first
    raise AssertionError("no four free ports in a row")


def test_a_reserved_port_is_held_until_it_is_handed_over(registry: Path, tmp_path: Path) -> None:
    reservations = PortReservations(registry, owner(tmp_path, "a"))
    number = reservations.reserve(["server"])["server"]
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((LOOPBACK, number))
    reservations.hand_over("server")
    with socket.socket() as server:
        server.bind((LOOPBACK, number))
        server.listen()


def test_owners_never_share_a_port_even_when_no_server_listens(
    registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = only_four_ports(monkeypatch)
    first, second = (PortReservations(registry, owner(tmp_path, name)) for name in "ab")
    mine = first.reserve(["x", "y"])
    first.hand_over("x", "y")
    others = second.reserve(["x", "y"])
    assert sorted([*mine.values(), *others.values()]) == list(few)


def test_exhausted_ports_are_reported_and_released_ones_are_given_again(
    registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_four_ports(monkeypatch)
    first, second = (PortReservations(registry, owner(tmp_path, name)) for name in "ab")
    mine = first.reserve("wxyz")
    with pytest.raises(DevError, match="no free port"):
        second.reserve(["x"])
    first.release(mine.values())
    assert second.reserve(["x"])["x"] in mine.values()


def test_ports_of_an_owner_that_is_gone_are_given_again(
    registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_four_ports(monkeypatch)
    vanished = owner(tmp_path, "vanished")
    mine = PortReservations(registry, vanished).reserve("wxyz")
    vanished.unlink()
    assert set(PortReservations(registry, owner(tmp_path, "b")).reserve("wxyz").values()) == set(mine.values())


def test_release_leaves_a_port_that_has_another_owner_by_now(registry: Path, tmp_path: Path) -> None:
    first, second = (PortReservations(registry, owner(tmp_path, name)) for name in "ab")
    number = second.reserve(["x"])["x"]
    first.release([number])
    assert (registry / str(number)).read_text() == str(tmp_path / "b")


@pytest.mark.parametrize(
    ("ephemeral", "expected"),
    [((32_768, 60_999), (10_000, 32_767)), ((1_024, 65_535), ports.FALLBACK_RANGE)],
)
def test_ports_are_picked_outside_the_ephemeral_range(ephemeral: tuple[int, int], expected: tuple[int, int]) -> None:
    assert port_range(ephemeral) == expected
