"""Batches are sent from threads, one at a time for each producer."""

from __future__ import annotations

import threading

import pulsar

from scalable_topics.sdk.batch_flushing import BatchFlushing

_SECONDS = 10


class _Producer:
    """Its flush lasts until it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.let_go = threading.Semaphore(0)
        self.at_once = 0

    def flush(self) -> None:
        self.at_once += 1
        assert self.at_once == 1
        self.begun.release()
        assert self.let_go.acquire(timeout=_SECONDS)
        self.at_once -= 1
        raise pulsar.ConnectError


def test_a_flush_asked_for_meanwhile_follows_the_one_under_way() -> None:
    producer, other, flushing = _Producer(), _Producer(), BatchFlushing()
    flushing.flush(producer)  # type: ignore[arg-type]
    assert producer.begun.acquire(timeout=_SECONDS)
    for _ in range(3):
        flushing.flush(producer)  # type: ignore[arg-type]
    flushing.flush(other)  # type: ignore[arg-type]
    assert other.begun.acquire(timeout=_SECONDS), "one producer does not wait for another"
    producer.let_go.release()
    assert producer.begun.acquire(timeout=_SECONDS), "what was sent meanwhile is flushed, too"
    producer.let_go.release()
    assert not producer.begun.acquire(timeout=0.2), "three requests, one more flush"
    other.let_go.release()
