"""The console scripts. They are there wherever the operator is, and what they need is not."""

from __future__ import annotations

import sys

_EXIT_CODE = 2


def run() -> None:
    """`stopics` and `kubectl-stopics`."""
    try:
        from scalable_topics_operator.cli import main  # noqa: PLC0415
    except ModuleNotFoundError as error:
        sys.exit(_missing(error))
    main.run()


def complete_for_kubectl() -> None:
    """`kubectl_complete-stopics`."""
    try:
        from scalable_topics_operator.cli import main  # noqa: PLC0415
    except ModuleNotFoundError as error:
        sys.exit(_missing(error))
    main.complete_for_kubectl()


def _missing(error: ModuleNotFoundError) -> int:
    print(f"stopics: {error.name} is not installed: pip install 'scalable-topics[cli]'", file=sys.stderr)
    return _EXIT_CODE
