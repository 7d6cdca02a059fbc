"""The integration layer on a broker of Pulsar 5, with backend Classic: `make show-pulsar-5`."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from pathlib import Path

import pytest

from dev.access import ADMIN_URL, KUBECONFIG
from tests.support.evidence import Evidence, table
from tests.support.suite_report import passed_cases

_ROOT = Path(__file__).parents[2]
_COMMAND = ("make", "test-integration-5")
_PART = "The integration layer"


@pytest.mark.timeout(5400)
async def test_the_integration_layer_passes_on_pulsar_5(tmp_path: Path) -> None:
    page = Evidence("classic-on-pulsar-5.md", "Classic topics on Pulsar 5", "make show-pulsar-5", (_PART,))
    report, output = tmp_path / "suite.xml", tmp_path / "suite.log"
    # It starts a cluster of its own.
    environment = {name: value for name, value in os.environ.items() if name not in (ADMIN_URL, KUBECONFIG)}
    started = time.monotonic()
    with output.open("wb") as log:
        suite = await asyncio.create_subprocess_exec(
            *_COMMAND, f"PYTEST_ARGUMENTS=--junitxml={report}", stdout=log, stderr=log, env=environment, cwd=_ROOT
        )
        code = await suite.wait()
    assert code == 0, output.read_text()[-6000:]
    seconds = time.monotonic() - started
    passed = Counter(_file(case.attrib["classname"]) for case in passed_cases(report))
    folders = Counter(file.partition("/")[0] for file in passed.elements())
    page.show(
        _PART,
        f"All {passed.total()} tests of `{' '.join(_COMMAND)}` passed in {seconds / 60:.0f} min, none skipped: the",
        "tests that `make test-integration` runs on Pulsar 4.2, on one broker of Pulsar 5.0 with connections that say",
        "`backend: Classic`. Where the two Pulsars answer differently a test says both; docs/pulsar-5.md lists these.",
        "Those of the folders chart, crds and dev hardly meet a broker.",
        "",
        *table(("folder", "passed"), sorted(folders.items())),
        "",
        *table(("file", "passed"), sorted(passed.items())),
    )
    assert page.write()


def _file(class_name: str) -> str:
    """Path of a test's file under `tests/integration`, without its ending."""
    parts = class_name.removeprefix("tests.integration.").split(".")
    return "/".join(part for part in parts if not part.startswith("Test"))
