"""The kinds of stories that a seed can tell, and how often each is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.simulation.coordinated_world import tell as tell_consumers
from tests.simulation.fleet.story import tell_fleet_story
from tests.simulation.random_story import tell_migration, tell_random


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of story.

    Args:
        name: of the kind.
        tell: tells the story of a seed; raises AssertionError when something went wrong that must not.
        every: of so many seeds one tells a story of this kind, since some take longer.
        what: it is about.
    """

    name: str
    tell: Callable[[int], object]
    every: int
    what: str


KINDS = (
    Kind("operations", tell_random, 1, "every operation on a topic, each call a step at which something goes wrong"),
    Kind("migrations", tell_migration, 4, "an ordinary topic that is migrated, and what becomes of it"),
    Kind("replicas", tell_fleet_story, 5, "whole operator replicas, from elections to consumers, in virtual time"),
    Kind("consumers", tell_consumers, 10, "coordinators of an ordered subscription and slow consumers"),
)


@dataclass(frozen=True, slots=True, order=True)
class Story:
    """One story.

    Args:
        kind: name of its kind.
        seed: makes it up.
    """

    kind: str
    seed: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.seed}"

    @classmethod
    def parse(cls, text: str) -> Story:
        """Read `kind:seed`. Raises ValueError for anything else."""
        kind, _, seed = text.partition(":")
        if kind not in {one.name for one in KINDS}:
            raise ValueError(f"{text!r} is not kind:seed; kinds are {', '.join(one.name for one in KINDS)}")
        return cls(kind, int(seed))

    def tell(self) -> None:
        """Tell it. Raises AssertionError when something went wrong that must not."""
        next(kind for kind in KINDS if kind.name == self.kind).tell(self.seed)

    def what_went_wrong(self) -> str:
        """Tell it, and answer the first line of what went wrong that must not; empty for nothing."""
        try:
            self.tell()
        except Exception as error:
            return str(error).split("\n", 1)[0] or type(error).__name__
        return ""


def stories(first: int, count: int) -> Iterator[Story]:
    """The stories of `count` seeds from `first` on."""
    for seed in range(first, first + count):
        for kind in KINDS:
            if seed % kind.every == 0:
                yield Story(kind.name, seed)
