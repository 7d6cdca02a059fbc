"""How long work is told of: lines, and on a terminal a bar below them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from scalable_topics_operator.cli.printing import people, tell
from scalable_topics_operator.cli.tables import plain


class Steps:
    """What is told of work under way."""

    def tell(self, text: str) -> None:
        """A line, which stays."""
        tell(text)

    def advance(self) -> None:
        """One more part is done."""


class _Bar(Steps):
    def __init__(self, progress: Progress, label: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(label, total=total)

    def tell(self, text: str) -> None:
        """A line above the bar."""
        self._progress.console.print(Text(plain(text)))

    def advance(self) -> None:
        """Move the bar."""
        self._progress.advance(self._task)


@contextmanager
def steps(label: str, total: int | None = None) -> Iterator[Steps]:
    """Tell of work on stderr while it lasts.

    Args:
        label: what is being done.
        total: of how many parts; None if nobody knows.
    """
    console = people(stderr=True)
    if not console.is_terminal:
        yield Steps()
        return
    counted = (BarColumn(), MofNCompleteColumn()) if total is not None else ()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), *counted, TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(progress, label, total)
