"""The one error style of the development cluster: a sentence for the user, and no traceback."""


class DevError(Exception):
    """Something the user can act on. The message is complete by itself."""


class PortClashError(DevError):
    """A server could not bind a port that was free when it was picked."""
