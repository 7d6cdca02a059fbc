"""How GitOps tools judge an object, as a program: kstatus' own rules, Flux's expressions, Argo CD's scripts."""

from pathlib import Path

from dev.artifacts import BUILD_FLAGS
from dev.go_modules import own_program

SOURCES = Path(__file__).parent / "gitops"


def gitops() -> Path:
    """Return the program, which judges the object on its standard input by expressions and a script."""
    flags = [*BUILD_FLAGS, "-ldflags", "-s -w"]
    note = "building gitops (once a machine; a few seconds after the Kubernetes programs)"
    return own_program("gitops", SOURCES, ["main.go", "expressions.go", "script.go"], flags, note)
