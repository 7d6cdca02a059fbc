"""Scalable topics on brokers that have none: each segment is an ordinary persistent topic."""

from scalable_topics_operator.backends.classic.backend import ClassicBackend
from scalable_topics_operator.backends.classic.protection import ProtectionScope
from scalable_topics_operator.backends.classic.settling import Settling

__all__ = ["ClassicBackend", "ProtectionScope", "Settling"]
