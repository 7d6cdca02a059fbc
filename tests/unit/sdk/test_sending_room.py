"""How far threads may run ahead of the event loop (hazard A5-26151)."""

from __future__ import annotations

import threading

from scalable_topics.sdk.sending_room import SendingRoom

TIMEOUT_SECONDS = 10


def taking(room: SendingRoom, size_bytes: int) -> threading.Event:
    """Take room in a thread; the event says when there was some."""
    taken = threading.Event()

    def take() -> None:
        room.take(size_bytes)
        taken.set()

    threading.Thread(target=take, daemon=True).start()
    return taken


def test_messages_beyond_the_bound_wait() -> None:
    room = SendingRoom(2, 100)
    room.take(1)
    room.take(1)
    third = taking(room, 1)
    assert not third.wait(0.1)
    room.give_back(1)
    assert third.wait(TIMEOUT_SECONDS)


def test_bytes_beyond_the_bound_wait_and_do_not_keep_smaller_ones() -> None:
    room = SendingRoom(10, 100)
    room.take(60)
    room.take(30)
    large, small = taking(room, 90), taking(room, 40)
    assert not large.wait(0.1)
    assert not small.wait(0.1)
    room.give_back(30)
    assert small.wait(TIMEOUT_SECONDS)
    assert not large.is_set()


def test_a_message_larger_than_the_bound_goes_alone() -> None:
    room = SendingRoom(10, 100)
    room.take(500)
    second = taking(room, 1)
    assert not second.wait(0.1)
    room.give_back(500)
    assert second.wait(TIMEOUT_SECONDS)
