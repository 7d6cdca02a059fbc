"""What the Kubernetes API may answer instead of what was asked; the error style of `cluster`."""

from __future__ import annotations


class KubeError(Exception):
    """A call to the Kubernetes API failed.

    Args:
        what: the call and the object it was for, such as `patch scalabletopics demo/orders`.
        status: HTTP status, 0 when no answer came.
        message: the API server's own message.
    """

    def __init__(self, what: str, status: int, message: str) -> None:
        super().__init__(f"{what}: {message}" if status == 0 else f"{what}: {status} {message}")
        self.what = what
        self.status = status
        self.message = message


class KubeUnavailable(KubeError):
    """No answer, 429 or 5xx, after the bounded retries: ask again later."""


class KubeConflict(KubeError):
    """409: the object changed since it was read, or exists already."""


class KubeNotFound(KubeError):
    """404: the object, or its kind, does not exist."""


class KubeInvalid(KubeError):
    """400 or 422: the API server's schema refuses what was sent."""


class KubeForbidden(KubeError):
    """403: our role does not allow the call."""
