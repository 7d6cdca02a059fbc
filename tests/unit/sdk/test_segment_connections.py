"""Which connections segments share."""

from typing import Any

from scalable_topics.sdk.segment_connections import SegmentConnections


class Options:
    """Makes things that can be closed."""

    def __init__(self) -> None:
        self.made: list[Client] = []

    def connect(self) -> Any:
        self.made.append(Client())
        return self.made[-1]


class Client:
    """Counts how often it is closed."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def make(most: int) -> tuple[SegmentConnections, Options]:
    options = Options()
    return SegmentConnections(options, most), options  # type: ignore[arg-type]


def test_segments_have_connections_of_their_own() -> None:
    connections, options = make(3)
    assert len({connections.acquire(f"s{number}") for number in range(3)}) == 3
    assert connections.acquire("s0") is connections.acquire("s0")
    assert len(options.made) == 3


def test_beyond_the_bound_they_are_shared_evenly() -> None:
    connections, options = make(2)
    for number in range(6):
        connections.acquire(f"s{number}")
    assert len(options.made) == 2
    used = [connections.acquire(f"s{number}") for number in range(6)]
    assert sorted(used.count(client) for client in options.made) == [3, 3]


def test_what_is_free_again_is_used_again() -> None:
    connections, options = make(2)
    first = connections.acquire("a")
    connections.acquire("a")
    connections.release("a")
    assert connections.acquire("a") is first
    connections.release("a")
    connections.release("a")
    assert connections.acquire("b") is first
    assert len(options.made) == 1


def test_all_are_closed() -> None:
    connections, options = make(2)
    for number in range(3):
        connections.acquire(f"s{number}")
    connections.close()
    assert [client.closed for client in options.made] == [1, 1]
