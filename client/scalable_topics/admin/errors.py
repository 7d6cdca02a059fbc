"""The one error style of the admin client."""

from __future__ import annotations


class AdminError(Exception):
    """The gateway refused something, or could not be asked. Holds no secret.

    Args:
        reason: what is wrong and what to do about it, in the gateway's words where it has answered.
        status: of HTTP; None where there was no answer.
        manifest: what to apply with kubectl instead, as YAML; empty if that is not the way.
    """

    def __init__(self, reason: str, status: int | None = None, manifest: str = "") -> None:
        super().__init__(reason if status is None else f"{status}: {reason}")
        self.reason = reason
        self.status = status
        self.manifest = manifest


class NotFoundError(AdminError):
    """There is no such topic, subscription, segment or operation (404)."""


class NotAllowedError(AdminError):
    """The caller is not known or lacks a right, or it is not done through REST here (401, 403, 405)."""


class ConflictError(AdminError):
    """What there is stands in the way: it is there already, or is not in a state for it (409, 412)."""


class UnavailableError(AdminError):
    """Nobody could answer in time, however often it was tried (429, 502, 503, 504, or no answer at all).

    Where a write got no answer, the reason says that it may have been done.
    """


_OF_STATUS: dict[int, type[AdminError]] = {
    401: NotAllowedError,
    403: NotAllowedError,
    404: NotFoundError,
    405: NotAllowedError,
    409: ConflictError,
    412: ConflictError,
    429: UnavailableError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}


def error_of(status: int, reason: str, manifest: str = "") -> AdminError:
    """The error that an answer of the gateway is."""
    return _OF_STATUS.get(status, AdminError)(reason, status, manifest)
