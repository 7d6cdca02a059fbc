"""What the whole run on a node of this machine has shown, for docs/evidence."""

from __future__ import annotations

import json
import os
from collections import defaultdict

from tests.support.evidence import Evidence

IMAGES_PART = "Images"
TRAFFIC_PART = "Traffic through every change"
KINDS_PART = "What a user sees"
RIGHTS_PART = "Rights that are granted, and that were used"
PARTS = (IMAGES_PART, TRAFFIC_PART, KINDS_PART, RIGHTS_PART)
FILE = "end-to-end.md"
IMAGE_SIZES = "E2E_IMAGE_SIZES"


class Report:
    """Collects lines of the parts, and writes the page once all of them have some."""

    def __init__(self) -> None:
        self._evidence = Evidence(
            FILE, "The chart on a real node, from installation to uninstallation", "make e2e", PARTS
        )
        self._lines: dict[str, list[str]] = defaultdict(list)
        sizes = json.loads(os.environ.get(IMAGE_SIZES, "[]"))
        if sizes:
            rows = [f"| `{each['target']}` | {each['whole']} MB | {each['own']} MB |" for each in sizes]
            self.add(IMAGES_PART, "| image | in all | above its base |", "| --- | --- | --- |", *rows)
        heads = ("topic", "sent", "lost", "duplicated", "out of order", "longest wait, ms")
        self.add(TRAFFIC_PART, f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads))
        self._judged = 0

    def add(self, part: str, *lines: str) -> None:
        """Add lines to a part."""
        self._lines[part] += lines

    def judged(self, topic: str, found: dict[str, int]) -> None:
        """Add what became of the messages of a topic."""
        lost = found["lost"] + found["not_received"] + found["failed"]
        duplicated = found["duplicated"] + found["received_twice"]
        cells = (topic, found["sent"], lost, duplicated, found["disordered"], found["longest_ms"])
        self.add(TRAFFIC_PART, f"| {' | '.join(map(str, cells))} |")
        self._judged += 1

    def write(self) -> None:
        """Write the page, unless a part is missing."""
        for part, lines in self._lines.items():
            if part != TRAFFIC_PART or self._judged:
                self._evidence.show(part, *lines)
        self._evidence.write()
