"""The report as a page: `python -m bench.page [--check]` renders docs/benchmarks.md from docs/benchmarks.json.

Sentences on what is compared, and reasons, come from the code of the sections, so that they can be mended without
measuring again.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.judging import Change, Comparison, Standing, changes, comparisons, targets
from bench.measurement import Better, Group, Measurement, Of
from bench.report import Machine, Report, Result, from_json
from bench.section import Section
from bench.sections import SECTIONS
from dev.generated import write_page
from tests.support.evidence import table

FOLDER = Path(__file__).parents[1] / "docs"
JSON_NAME, PAGE_NAME = "benchmarks.json", "benchmarks.md"
_ABOUT = (
    "Written by `make bench` from `docs/benchmarks.json`; do not edit. `make bench ONLY=kernel,producing` measures "
    "some sections anew and leaves the others as they are. Each section is measured by itself, with servers of its own "
    "that run on the same machine. What is compared takes turns in one run, so that ratios hold where times are those "
    "of a small machine. Values are medians of the rounds, beside the lowest and the highest round."
)
_BEFORE = (
    "Each section stands beside what it was in the report before. Worse is what is worse in every round than it was in "
    "any, by more than 10 % of the median."
)


def render(report: Report, sections: Sequence[Section]) -> str:
    """The page of a report.

    Args:
        report: what was measured.
        sections: with the sentences that belong to it, in the order of the page.

    Raises ValueError for a section that there is no longer, or a reason for what was not measured.
    """
    known = {one.key: one for one in sections}
    if unknown := sorted(set(report.results) - set(known)):
        raise ValueError(f"there is no section {', '.join(unknown)}")
    for key, result in report.results.items():
        _require_reasons_of_something(known[key], result)
    parts = [(one, report.results[one.key]) for one in sections if one.key in report.results]
    lines = ["# Benchmarks", "", _ABOUT, ""]
    if any(result.occasion.is_small for _, result in parts):
        lines += ["**Made in tiny sizes, to see that it works: the numbers mean nothing.**", ""]
    lines += [
        "## Targets",
        "",
        *_targets(parts),
        "",
        "## What is ahead, and what is behind",
        "",
        *_standings(parts),
    ]
    lines += ["## Regressions", "", *_regressions(parts), "", "## Where and when", "", *_occasions(parts), ""]
    missing = [one.title for one in sections if one.key not in report.results]
    if missing:
        lines += [f"Not measured yet: {'; '.join(missing)}.", ""]
    for section, result in parts:
        lines += _section(section, result)
    return "\n".join(lines).rstrip() + "\n"


def shown(value: float) -> str:
    """A value with about three digits, and whole ones as they are."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


_Parts = Sequence[tuple[Section, Result]]


def _require_reasons_of_something(section: Section, result: Result) -> None:
    groups = result.measured.groups
    rows = [one for group in groups for one in group.measurements]
    names = {group.title for group in groups} | {one.name for one in rows}
    names |= {one.target.text for one in rows if one.target is not None}
    if idle := sorted(set(section.reasons) - names):
        raise ValueError(f"{section.key} has reasons for what it does not measure: {', '.join(idle)}")


def _targets(parts: _Parts) -> Iterable[str]:
    rows = []
    for section, result in parts:
        for one in targets(result.measured.groups):
            unit = "" if one.target.of is Of.RATIO else one.measurement.unit
            value = "no ratio" if one.value is None else f"{shown(one.value)} {unit}".strip()
            value += f" ({one.measurement.name})"
            reason = "" if one.is_met else section.reasons.get(one.target.text, "")
            rows.append((_link(section), one.target.text, value, "met" if one.is_met else "**missed**", reason))
    return table(["section", "target", "measured", "", "why"], rows) if rows else ["No section has one."]


def _standings(parts: _Parts) -> Iterable[str]:
    for standing in Standing:
        lines: list[str] = []
        for section, result in parts:
            found = [one for one in comparisons(result.measured.groups) if one.standing is standing]
            if found:
                lines += _standing(section, found)
        yield from (f"**{standing.capitalize()}**" + (":" if lines else ": nothing."), "")
        yield from (*lines, "") if lines else ()


def _standing(section: Section, found: Sequence[Comparison]) -> Iterable[str]:
    """All that stands so in a section, after the reasons, each once."""
    reasons = dict.fromkeys(_reason(section, one.group, one.measurement) for one in found)
    yield " ".join([f"- {_link(section)}.", *filter(None, reasons)])
    for one in found:
        ours, theirs = (f"{shown(each.median)} {each.unit}" for each in (one.measurement, one.reference))
        yield (
            f"  - {one.group.title}: {one.measurement.name} {ours}, {one.reference.name} {theirs} "
            f"(ratio {one.ratio:.2f}, {_way(one.measurement.better)})"
        )


def _regressions(parts: _Parts) -> Iterable[str]:
    yield _BEFORE
    yield ""
    all_changes = [(section, one) for section, result in parts for one in changes(result)]
    rows = [_change(section, one) for section, one in all_changes if one.is_worse and not one.is_other_count]
    header = ["section", "what", "before", "now", "ratio"]
    yield from table(header, rows) if rows else ["Nothing is worse."]
    counts = [_change(section, one) for section, one in all_changes if one.is_other_count]
    yield ""
    yield "Counts, which are the same in every run of the same code, that are others now:"
    yield ""
    yield from table(header, counts) if counts else ["None."]


def _change(section: Section, one: Change) -> Sequence[str]:
    name = one.now.name if one.now.name == one.group else f"{one.group}: {one.now.name}"
    before, now = (f"{shown(value)} {one.now.unit}" for value in (one.before.median, one.now.median))
    return (_link(section), name, before, now, "" if one.ratio is None else f"{one.ratio:.2f}")


def _occasions(parts: _Parts) -> Iterable[str]:
    machines: list[Machine] = []
    rows = []
    for section, result in parts:
        occasion = result.occasion
        if occasion.machine not in machines:
            machines.append(occasion.machine)
        minutes = f"{occasion.duration_seconds / 60:.1f} min"
        place = str(machines.index(occasion.machine) + 1)
        when = occasion.date[: len("2026-11-30T17:25")].replace("T", " ")
        load = f"{occasion.load_before:.2f}"
        rows.append(
            (_link(section), when, occasion.commit, minutes, str(occasion.rounds), load, occasion.servers, place)
        )
    for number, one in enumerate(machines, 1):
        yield (
            f"{number}. {one.cores} cores of {one.model}, {one.memory_mib:,} MiB of memory, {one.kernel}, {one.python}"
        )
    yield ""
    if rows:
        yield from table(
            ["section", "begun (UTC)", "commit", "took", "rounds", "load before", "servers", "machine"], rows
        )


def _section(section: Section, result: Result) -> Iterable[str]:
    yield from (f"## {section.title}", "", section.prose, "")
    before = {(one.group, one.now.name): one for one in changes(result)}
    for group in result.measured.groups:
        yield from (f"### {group.title}", "")
        yield from _group(group, before)
        yield ""
    for note in result.measured.notes:
        yield from (note, "")
    if result.before is not None:
        yield f"Beside: {result.before.occasion.commit} of {result.before.occasion.date[:10]}."
        yield ""


def _group(group: Group, before: Mapping[tuple[str, str], Change]) -> Iterable[str]:
    with_ratios = group.reference is not None
    with_before = any((group.title, one.name) in before for one in group.measurements)
    header = ["", "unit", "median", "lowest to highest", "rounds"]
    header += [f"ratio to {group.reference}"] if with_ratios else []
    header += ["to the report before"] if with_before else []
    rows = []
    for one in group.measurements:
        row = [one.name, _unit(one), shown(one.median), f"{shown(one.lowest)} to {shown(one.highest)}"]
        row.append("exact" if one.is_exact else str(len(one.values)))
        if with_ratios:
            ratio = group.ratio(one)
            row.append("1" if one.name == group.reference else "" if ratio is None else f"{ratio:.2f}")
        if with_before:
            row.append(_beside(before.get((group.title, one.name))))
        rows.append(row)
    return table(header, rows)


def _beside(change: Change | None) -> str:
    if change is None:
        return "new"
    if change.ratio is None:
        return f"was {shown(change.before.median)}"
    return f"{change.ratio:.2f}{', **worse**' if change.is_worse else ''}"


def _reason(section: Section, group: Group, one: Measurement) -> str:
    return section.reasons.get(one.name) or section.reasons.get(group.title) or ""


def _unit(one: Measurement) -> str:
    return one.unit if one.better is Better.NEITHER else f"{one.unit}, {_way(one.better)}"


def _way(better: Better) -> str:
    return f"{better} is better"


def _link(section: Section) -> str:
    return f"[{section.title}](#{_slug(section.title)})"


def _slug(title: str) -> str:
    """The anchor of a heading, on GitHub and on the site."""
    kept = (one for one in title.lower() if one.isalnum() or one in " -_")
    return "".join(kept).replace(" ", "-")


def main() -> int:
    """Write or check the page; answers the exit code."""
    page = FOLDER / PAGE_NAME
    text = render(from_json((FOLDER / JSON_NAME).read_text()), SECTIONS)
    return write_page("Render the benchmarks' page from what was measured.", page, text)


if __name__ == "__main__":
    sys.exit(main())
