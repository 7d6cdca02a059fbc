"""Write the page of the chart's values: `python -m dev.chart_values [--check]`."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dev.generated import write_page

REPOSITORY = Path(__file__).parents[1]
CHART = REPOSITORY / "charts" / "scalable-topics"
PAGE = REPOSITORY / "docs" / "reference" / "chart-values.md"
_MARK = "# -- "
_HEAD = """# Values of the chart

Generated from `charts/scalable-topics/values.yaml` and its schema, which refuses everything else. How to use them:
[installing.md](../installing.md).

| value | type | default | meaning |
|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Value:
    """One value of the chart.

    Args:
        key: its path, with dots.
        default: what it is if nothing is said.
        schema: what it may be.
        meaning: its comment; empty if it has none.
    """

    key: str
    default: Any
    schema: Mapping[str, Any]
    meaning: str


def values() -> list[Value]:
    """All values of the chart in their order. Raises KeyError for one that the schema does not have."""
    text = (CHART / "values.yaml").read_text()
    schema = json.loads((CHART / "values.schema.json").read_text())
    return list(_walk(yaml.compose(text), yaml.safe_load(text), schema, text.splitlines(), ""))


def page() -> str:
    """The page."""
    return _HEAD + "".join(
        f"| `{one.key}` | {type_of(one.schema)} | `{json.dumps(one.default)}` | {one.meaning} |\n" for one in values()
    )


def type_of(schema: Mapping[str, Any]) -> str:
    """What a value may be, in words."""
    if "enum" in schema:
        # An unquoted Off is what YAML calls false.
        return ", ".join(f"`{choice}`" for choice in schema["enum"] if choice is not False)
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None:
        return f"{schema['type']}, {least} to {most}" if most is not None else f"{schema['type']}, {least} or more"
    return str(schema["type"])


def main() -> int:
    """Run the command; answers 1 when `--check` finds a difference."""
    return write_page("Write the page of the chart's values.", PAGE, page())


def _walk(
    node: yaml.Node | None, content: Any, schema: Mapping[str, Any], lines: list[str], path: str
) -> Iterator[Value]:
    if not isinstance(node, yaml.MappingNode):
        raise ValueError(f"{path or 'values.yaml'} is no mapping")
    for name, below in node.value:
        key = f"{path}{name.value}"
        known, default = schema["properties"][name.value], content[name.value]
        if "properties" in known and default:
            yield from _walk(below, default, known, lines, f"{key}.")
        else:
            yield Value(key, default, known, _comment(lines, name.start_mark.line))


def _comment(lines: list[str], line: int) -> str:
    """The lines right above one, from that with the mark on."""
    found: list[str] = []
    for text in map(str.strip, reversed(lines[:line])):
        if not text.startswith("#"):
            break
        found.insert(0, re.sub(r"^# ?", "", text))
        if text.startswith(_MARK):
            return " ".join(found).removeprefix("-- ")
    return ""


if __name__ == "__main__":
    sys.exit(main())
