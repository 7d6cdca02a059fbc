"""JSON logs, one object a line, without secrets."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object; fields given as `extra` become members."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON."""
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {
            key: value
            for key, value in record.__dict__.items()
            if key not in _STANDARD and isinstance(value, str | int | float | bool | None)
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def configure_logging(level: str, *, plain: bool = False) -> None:
    """Send all logs to stderr.

    Args:
        level: of our own loggers; kopf and aiohttp log warnings only, their INFO costs more than the work.
        plain: readable lines instead of JSON.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s") if plain else JsonFormatter()
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("scalable_topics_operator").setLevel(level.upper())
    for name in ("kopf", "aiohttp"):
        logging.getLogger(name).setLevel(logging.WARNING)
