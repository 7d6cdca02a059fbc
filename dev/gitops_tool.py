"""How GitOps tools judge an object, as a program: kstatus' own rules, Flux's expressions, Argo CD's scripts."""

import platform
from pathlib import Path

from dev.artifacts import BUILD_FLAGS
from dev.cache import content_key, ensure
from dev.console import say
from dev.go_modules import go_build

SOURCES = Path(__file__).parent / "gitops"


def gitops() -> Path:
    """Return the program, which judges the object on its standard input by expressions and a script."""
    inputs = [SOURCES / name for name in ("go.mod", "go.sum", "main.go", "expressions.go", "script.go")]
    flags = [*BUILD_FLAGS, "-ldflags", "-s -w"]
    key = content_key(inputs, *flags, platform.machine())
    return ensure("gitops", key, lambda into: _build(into, flags)) / "gitops"


def _build(into: Path, flags: list[str]) -> None:
    say("building gitops (once a machine; a few seconds after the Kubernetes programs)")
    go_build("gitops-build", SOURCES, into / "gitops", flags)
