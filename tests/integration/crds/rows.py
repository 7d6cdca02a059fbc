"""The form of the table of rules: for everything a schema demands, what is accepted, what is refused, in what words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.integration.crds.schema_walk import Demand

ABSENT = object()
"""Stands for a field that is left out."""


@dataclass(frozen=True, slots=True)
class Row:
    """One rule and its proof.

    Args:
        demand: the rule.
        accepted: values at the rule's path that the API server must take.
        refused: a value it must refuse, or ABSENT.
        message: what the user must read then, besides the path.
        entry: where the message points, below the path.
        on_change: the refused value is a change of an object that was taken.
    """

    demand: Demand
    accepted: tuple[Any, ...]
    refused: Any
    message: str
    entry: str = ""
    on_change: bool = False

    def __str__(self) -> str:
        return f"{self.demand.kind}-{self.demand.path}-{self.demand.keyword}-{self.demand.limit[:40]}"


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one kind."""

    kind: str
    rows: list[Row] = field(default_factory=list)

    def required(self, *paths: str) -> None:
        """Fields that must be there; the examples show that they are taken."""
        for path in paths:
            self._add(self._demand(path, "required", ""), (), ABSENT, "Required value")

    def at_least(self, path: str, least: int, accepted: Sequence[Any] | None = None) -> None:
        """A number with a lower bound; `accepted` where the bound itself breaks another rule."""
        taken = (least,) if accepted is None else accepted
        message = f"should be greater than or equal to {least}"
        self._add(self._demand(path, "minimum", str(least)), taken, least - 1, message)

    def at_most(self, path: str, most: int, accepted: Sequence[Any] | None = None) -> None:
        """A number with an upper bound; `accepted` where the bound itself breaks another rule."""
        taken = (most,) if accepted is None else accepted
        self._add(self._demand(path, "maximum", str(most)), taken, most + 1, f"should be less than or equal to {most}")

    def between(self, path: str, least: int, most: int) -> None:
        """A number with two bounds."""
        self.at_least(path, least)
        self.at_most(path, most)

    def longest(self, path: str, most: int, make: Callable[[int], str] = "a".__mul__) -> None:
        """A text with a greatest length; `make` gives one of a length that keeps all other rules."""
        message = f"Too long: may not be more than {most} bytes"
        self._add(self._demand(path, "maxLength", str(most)), (make(most),), make(most + 1), message)

    def not_empty(self, path: str, accepted: str = "a") -> None:
        """A text of at least one character; `accepted` where other rules ask for more."""
        self._add(self._demand(path, "minLength", "1"), (accepted,), "", "should be at least 1 chars long")

    def pattern(self, path: str, pattern: str, accepted: Sequence[Any], refused: Iterable[Any]) -> None:
        """A text of a form."""
        self._each(self._demand(path, "pattern", pattern), accepted, refused, f"should match '{pattern}'")

    def time(self, path: str) -> None:
        """A point in time."""
        self._add(
            self._demand(path, "format", "date-time"),
            ("2026-11-27T10:00:00Z",),
            "yesterday",
            "must be of type date-time",
        )

    def one_of(self, path: str, *values: str, accepted: Sequence[str] | None = None) -> None:
        """One of some words; `accepted` where the example's other fields do not go with all of them."""
        supported = ", ".join(f'"{value}"' for value in values)
        taken = values if accepted is None else accepted
        message = f'Unsupported value: "Other": supported values: {supported}'
        self._add(self._demand(path, "enum", str(list(values))), taken, "Other", message)

    def most_entries(self, path: str, most: int, make: Callable[[int], Any]) -> None:
        """A list of at most so many entries."""
        message = f"Too many: {most + 1}: must have at most {most} items"
        few, many = ([make(index) for index in range(count)] for count in (most, most + 1))
        self._add(self._demand(path, "maxItems", str(most)), (few,), many, message)

    def most_keys(self, path: str, most: int, make: Callable[[int], str] = "key-{}".format) -> None:
        """A map of at most so many keys."""
        message = f"Too many: {most + 1}: must have at most {most} items"
        few, many = ({make(index): "value" for index in range(count)} for count in (most, most + 1))
        self._add(self._demand(path, "maxProperties", str(most)), (few,), many, message)

    def fewest_entries(self, path: str, least: int, accepted: Sequence[Any]) -> None:
        """A list of at least so many entries."""
        message = f"should have at least {least} items"
        self._add(self._demand(path, "minItems", str(least)), (accepted,), list(accepted)[: least - 1], message)

    def unique(self, path: str, entries: Sequence[Any], keys: str = "") -> None:
        """A list whose entries, or their keys, differ; `entries` holds two that do not, at the end."""
        demand = self._demand(path, "unique", keys)
        entry = f"[{len(entries) - 1}]"
        self._add(demand, (list(entries[:-1]),), list(entries), "Duplicate value", entry=entry)

    def rule(self, path: str, message: str, accepted: Sequence[Any], refused: Iterable[Any]) -> None:
        """A CEL rule."""
        self._each(self._demand(path, "rule", message), accepted, refused, message)

    def fixed(self, path: str, message: str, value: Any, other: Any) -> None:
        """A field that cannot be changed."""
        self._add(self._demand(path, "rule", message), (value,), other, message, on_change=True)

    def _demand(self, path: str, keyword: str, limit: str) -> Demand:
        return Demand(self.kind, path, keyword, limit)

    def _each(self, demand: Demand, accepted: Sequence[Any], refused: Iterable[Any], message: str) -> None:
        """A row for each refused value; what is accepted is tried once."""
        for index, value in enumerate(refused):
            self._add(demand, accepted if index == 0 else (), value, message)

    def _add(
        self,
        demand: Demand,
        accepted: Sequence[Any],
        refused: Any,
        message: str,
        *,
        entry: str = "",
        on_change: bool = False,
    ) -> None:
        self.rows.append(Row(demand, tuple(accepted), refused, message, entry, on_change))
