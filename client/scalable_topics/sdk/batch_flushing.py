"""Has a producer's batch sent at once, from a thread.

pulsar-client's `flush_async` waits for a lock of the producer without letting go of the interpreter, which the holder
of that lock may need for the callback of a refused send: both then wait for ever (measured with 3.13). Its `flush` does
let go, but waits until everything is stored. So every producer that is flushed gets a thread for as long as that takes.
"""

from __future__ import annotations

import contextlib
import threading

import pulsar

from scalable_topics.sdk.pulsar_binding import AttachedProducer


class BatchFlushing:
    """Flushes producers; one asked for while another of the same producer is under way follows it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: set[AttachedProducer] = set()
        self._again: set[AttachedProducer] = set()

    def flush(self, producer: AttachedProducer) -> None:
        """Send what is batched now. Does not block; what becomes of it shows in the outcomes of the sends."""
        with self._lock:
            if producer in self._under_way:
                self._again.add(producer)
                return
            self._under_way.add(producer)
        # Nobody waits for it: with a silent broker it ends when the producer is closed.
        threading.Thread(target=self._run, args=(producer,), name="scalable-topics-flush", daemon=True).start()

    def _run(self, producer: AttachedProducer) -> None:
        while True:
            with contextlib.suppress(pulsar.PulsarException):
                producer.flush()
            with self._lock:
                if producer not in self._again:
                    self._under_way.discard(producer)
                    return
                self._again.discard(producer)
