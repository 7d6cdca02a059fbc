"""Random stories of every kind, with whatever can go wrong; `make simulate STORY=KIND:SEED` tells one again."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simulation.explore import SimulationFailed
from tests.simulation.fleet.story import tell_fleet_story
from tests.simulation.kinds import KINDS, Story, stories
from tests.simulation.random_story import tell_random
from tests.simulation.simulate import tell_quietly


def test_nothing_goes_wrong_that_must_not(story: Story) -> None:
    """R5–R9, R13, R14, R17, R19, at every step of every kind of story; hazards A3-25642b, A3-25642e, A3-26433b, B3, C32
    and C33.
    """
    story.tell()


def test_every_kind_is_told() -> None:
    told = list(stories(0, 20))
    assert {story.kind for story in told} == {kind.name for kind in KINDS}
    assert len([story for story in told if story.kind == KINDS[0].name]) == 20
    assert [Story.parse(str(story)) for story in told] == told


@pytest.mark.parametrize("text", ["replicas", "replicas:x", "of-nothing:1", ""])
def test_a_story_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"kind|invalid"):
        Story.parse(text)


def test_a_seed_tells_the_same_story_again() -> None:
    first, second = tell_random(7), tell_random(7)
    assert first.trace == second.trace
    assert first.trace != tell_random(8).trace
    fleet, again = tell_fleet_story(7), tell_fleet_story(7)
    assert fleet.trace == again.trace
    assert fleet.loop.time() == again.loop.time()
    assert fleet.trace != tell_fleet_story(8).trace


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_a_seed_tells_the_same_story_in_another_process(kind: str) -> None:
    """So that a story that failed for somebody fails for everybody."""
    code = (
        "import logging; logging.disable(logging.CRITICAL)\n"
        "from tests.simulation.kinds import KINDS\n"
        f"world = next(kind for kind in KINDS if kind.name == {kind!r}).tell(11)\n"
        "print('\\n'.join(world.trace))\n"
    )

    def told() -> str:
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        command = [sys.executable, "-c", code]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=60).stdout

    assert told() == told() != ""


@pytest.mark.parametrize(
    ("kind", "place"),
    [("operations", "tests.simulation.random_story"), ("replicas", "tests.simulation.fleet.story")],
)
def test_a_failure_says_what_happened_and_how_to_tell_it_again(
    monkeypatch: pytest.MonkeyPatch, kind: str, place: str
) -> None:
    def fail(world: object) -> None:
        raise AssertionError("something that must never be")

    monkeypatch.setattr(f"{place}.check_end", fail)
    story = Story(kind, 11)
    with pytest.raises(SimulationFailed) as failure:
        story.tell()
    text = str(failure.value)
    assert text.startswith("seed 11: AssertionError: something that must never be\n")
    assert f"make simulate STORY={story}" in text
    ((told, _, wrong),) = tell_quietly([story])
    assert (told, wrong) == (story, "seed 11: AssertionError: something that must never be")
