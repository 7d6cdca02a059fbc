"""Pulsar 5, whose brokers own the layouts of scalable topics, behind the protocol that operations use."""

from scalable_topics_operator.backends.native.backend import NativeBackend

__all__ = ["NativeBackend"]
