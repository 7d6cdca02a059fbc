"""Policies from files, as they are written for Kubernetes, and what they come out to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from scalable_topics_operator.autoscale.policy import KNOBS, EffectivePolicy, Knobs, Level, resolve
from scalable_topics_operator.autoscale.written_knobs import read_written

_BESIDE_KNOBS = "target"
_PATHS = frozenset(entry.path for entry in KNOBS)
_GROUPS = frozenset(path.partition(".")[0] for path in _PATHS if "." in path)


class PolicyUnreadable(Exception):
    """A file holds no policy that can be applied; the message says which file and what is wrong."""


def read_policies(files: Sequence[str]) -> EffectivePolicy:
    """What the policies come out to, laid over the defaults in the order given, widest first.

    Args:
        files: each a SegmentAutoScalePolicy, or its knobs alone, as YAML or JSON; none for the defaults.

    Raises PolicyUnreadable.
    """
    policy = resolve([Level(file, _read(file)) for file in files])
    if policy.config is None:
        raise PolicyUnreadable(policy.problem)
    return policy


def _read(file: str) -> Knobs:
    try:
        documents = [one for one in yaml.safe_load_all(Path(file).read_text(encoding="utf-8")) if one is not None]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise PolicyUnreadable(f"{file}: {error}") from None
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        raise PolicyUnreadable(f"{file}: it must hold one policy; it holds {len(documents)} documents")
    knobs: Any = documents[0].get("spec") if "kind" in documents[0] else documents[0]
    if not isinstance(knobs, Mapping):
        raise PolicyUnreadable(f"{file}: spec is missing")
    for path in _paths(knobs):
        if path not in _PATHS and path != _BESIDE_KNOBS:
            raise PolicyUnreadable(f"{file}: {path} is no knob; docs/policies.md names them all")
    try:
        return read_written(knobs)
    except ValueError as error:
        raise PolicyUnreadable(f"{file}: {error}") from None


def _paths(knobs: Mapping[str, Any]) -> Iterator[str]:
    for name, value in knobs.items():
        if name in _GROUPS and isinstance(value, Mapping):
            yield from (f"{name}.{inner}" for inner in value)
        elif value is not None:
            yield str(name)
