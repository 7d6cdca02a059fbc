"""Topics' thresholds as the operator publishes them: a JSON file in a folder both see, or of a ConfigMap (R35)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from scalable_topics.layout.json_fields import MALFORMED, parse_json
from segment_load.change_filter import RATES, THRESHOLDS_SCHEMA
from segment_load.frames import local_frame


class ThresholdsUnreadable(Exception):
    """The file is not what the operator writes; the message says where."""


def parse_thresholds(text: str) -> list[tuple[str, list[float], list[float]]]:
    """Read `{"topic://…": {"split": [4 rates], "merge": [4 rates]}}`. Raises ThresholdsUnreadable."""
    try:
        found = parse_json(text)
    except ValueError as error:
        raise ThresholdsUnreadable(f"it is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ThresholdsUnreadable("it is no JSON object of topics")
    return [(topic, *(_rates(topic, one, kind) for kind in ("split", "merge"))) for topic, one in sorted(found.items())]


def _rates(topic: str, one: Any, kind: str) -> list[float]:
    rates = one.get(kind) if isinstance(one, dict) else None
    if not isinstance(rates, list) or len(rates) != len(RATES):
        raise ThresholdsUnreadable(f"{topic}: {kind} must be a list of {len(RATES)} rates")
    try:
        numbers = [float(rate) for rate in rates]
    except MALFORMED:
        raise ThresholdsUnreadable(f"{topic}: {kind} must be numbers") from None
    if not all(math.isfinite(number) and number >= 0 for number in numbers):
        raise ThresholdsUnreadable(f"{topic}: {kind} must be 0 or more")
    return numbers


class Thresholds:
    """The file, read again when it has changed. One that cannot be read leaves the last one in force.

    Args:
        file: empty for none: all topics have the defaults.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._text = ""
        self._rows: list[tuple[str, list[float], list[float]]] = []
        self.problem = ""

    def read(self, spark: SparkSession) -> DataFrame:
        """As `THRESHOLDS_SCHEMA`; `problem` says why the last reading failed, if it did.

        Raises ThresholdsUnreadable while no reading has succeeded yet: with the defaults all cold times would be wrong.
        """
        try:
            text = Path(self._file).read_text(encoding="utf-8") if self._file else "{}"
            if text != self._text:
                self._rows, self._text = parse_thresholds(text), text
            self.problem = ""
        except (OSError, UnicodeDecodeError, ThresholdsUnreadable) as error:
            self.problem = f"thresholds in {self._file}: {error}"
            if not self._text:
                raise ThresholdsUnreadable(self.problem) from None
        return local_frame(spark, self._rows, THRESHOLDS_SCHEMA)
