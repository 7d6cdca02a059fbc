"""What an operation may meet when it asks the messaging system for something.

Backends translate every answer of a broker into one of these; operations and controllers decide by type
and never look at status codes or broker texts.
"""

from __future__ import annotations


class BackendError(Exception):
    """A request to the messaging system did not do what was asked.

    Args:
        message: what was asked of which object and what went wrong, fit for a condition; holds no secret.
    """


class BackendUnavailable(BackendError):
    """Nothing is known to be wrong with the request: ask again later (timeout, refused connection, 429, 5xx)."""


class LogFenced(BackendUnavailable):
    """A broker was overtaken in writing what it knows of a topic's log, and uses it no more until it loads the topic
    anew.
    """


class BackendRefused(BackendError):
    """The broker will refuse the same request again until somebody changes something."""


class AccessDenied(BackendRefused):
    """The connection's credentials lack a right (401, 403); the message says which."""


class NamespaceMissing(BackendRefused):
    """The Pulsar tenant or namespace does not exist."""


class TopicMissing(BackendRefused):
    """The topic (a segment or a claim) does not exist."""


class TopicEmpty(BackendRefused):
    """The topic holds no message."""


class NameTaken(BackendRefused):
    """A topic of the wanted name exists already and is not ours."""


class Unsupported(BackendRefused):
    """The topic, or the namespace it is in, uses what scalable topics do not work with (R24)."""


class ReasonedRefusal(BackendRefused):
    """A refusal that says why in a word, too: the reason of a condition.

    Args:
        reason: why, in one CamelCase word.
        message: why and what to do, for people.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class NameRefused(ReasonedRefusal):
    """The name cannot be had (R1)."""


class MigrationRefused(ReasonedRefusal):
    """An ordinary topic cannot be migrated as things are (pip-475 §2.4)."""


class ClientsAttached(BackendRefused):
    """A topic or cursor cannot be deleted because clients are connected to it."""


class RequestRefused(Exception):
    """What somebody asked for cannot be done as things are.

    Args:
        reason: why, in one CamelCase word.
        message: why and what to do, for people.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class NotYet(Exception):
    """An operation waits for somebody else, and an event will tell of it.

    Args:
        message: what it waits for.
        retry_seconds: when to look again if no event comes.
    """

    def __init__(self, message: str, retry_seconds: float = 1.0) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds
