"""The tutorial and the pages that go on with its cluster, by somebody who has nothing but a clean clone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.documentation.clean_clone import clean_clone, take_the_walk

_WALK_SECONDS = 600


@pytest.mark.timeout(_WALK_SECONDS + 200)
def test_every_command_works_as_printed_and_prints_what_is_printed(tmp_path: Path) -> None:
    with clean_clone(tmp_path) as clone:
        outcome = take_the_walk(clone, _WALK_SECONDS)
        assert not outcome.problems, "\n".join(outcome.problems)
        # The tutorial's last section leaves the tree as it was.
        left = {file.name for file in clone.folder.iterdir()}
        assert left.isdisjoint({"operator.log", "send.py", "gateway.token"})
