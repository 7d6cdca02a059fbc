"""Hostile input: what somebody sends who wants to break a reader, or whose own parts are broken.

Most of it begins with something that is as it should be: what differs from that in one place gets past the first check.
Hypothesis chooses the seeds and tells the one that failed; what comes of a seed is made here, as thousands of inputs a
second are worth more than small ones.
"""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

_Path = tuple[str | int, ...]

_TIMES = "FUZZ_TIMES"

randomness: st.SearchStrategy[random.Random] = st.integers(0, 2**64 - 1).map(random.Random)
"""Where hostile input comes from."""

NESTED = 50_000
"""Levels of what is nested without end; Python's parser takes a thousand."""

NESTED_TEXTS: tuple[bytes, ...] = (
    b"[" * NESTED,
    b'{"a":' * NESTED,
    b"[" * 900 + b"]" * 900,
    b'{"version":1,"type":"refused","v":1,"x":' + b"[" * 900 + b"]" * 900 + b"}",
)
"""What is nested: without end, and as deep as can just be parsed."""

OTHER_TEXTS: tuple[bytes, ...] = (
    b"",
    b"null",
    b"true",
    b"0",
    b"-",
    b'"text"',
    b"[]",
    b"{}",
    b"NaN",
    b"[1e999]",
    b"1" * 5000,
    b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>",
    b"\xff\xfe{\x00}\x00",
    b"\xef\xbb\xbf{}",
    '{"reason": "æ"}'.encode("latin-1"),
    b"\x80abc",
    b"{" + b" " * 100_000,
)
"""What is no document at all."""

_STRANGE: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    2**31,
    2**63,
    -(2**63) - 1,
    10**400,
    0.5,
    -0.0,
    1e308,
    float("inf"),
    float("-inf"),
    float("nan"),
    "",
    " ",
    "\x00",
    "\ud800",
    "\u202e\x1b[31m",
    "../../etc/passwd",
    "9" * 5000,
    "-" * 300,
    "x" * 100_000,
    "é" * 300,
    "{{7*7}}${7*7}%s%n",
    "1:2:3:4",
    "1:",
    ":",
    "0000-ffff",
    "persistent://a/b/c",
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"type": {"type": []}},
)


def fuzzing(examples: int) -> Callable[[Any], Any]:
    """Settings of a test with so many inputs: a busy machine is no finding, and seeds cannot be made smaller.

    They are the same in every run; `make fuzz` tries others, and many times as many.
    """
    times = int(os.environ.get(_TIMES, "1"))
    return settings(
        max_examples=examples * times,
        derandomize=times == 1,
        deadline=None,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )


def strange_value(rng: random.Random) -> Any:
    """A value that is rarely what a reader expects; nothing that is nested without end."""
    match rng.randrange(6):
        case 0:
            return rng.randint(-(2**40), 2**40)
        case 1:
            return rng.uniform(-1e6, 1e6)
        case 2:
            return "".join(chr(rng.choice((rng.randrange(128), rng.randrange(0x11000)))) for _ in range(12))
        case _:
            return copy.deepcopy(rng.choice(_STRANGE))


def mutated(rng: random.Random, document: Any, value: Callable[[random.Random], Any] = strange_value) -> Any:
    """A copy of a decoded JSON document that differs in one to three places.

    Args:
        rng: chooses.
        document: as it should be.
        value: makes what is put in.
    """
    found = copy.deepcopy(document)
    for _ in range(rng.randint(1, 3)):
        found = _changed(rng, found, rng.choice(list(_paths(found, ()))), value)
    return found


def text_of(rng: random.Random, document: Any) -> bytes:
    """A document as somebody may send it: changed, cut off, of another encoding, or nothing of the kind."""
    text = json.dumps(mutated(rng, document) if rng.random() < 0.8 else document).encode()
    match rng.randrange(16):
        case 0:
            return text[: rng.randrange(len(text) + 1)]
        case 1:
            at = rng.randrange(len(text) + 1)
            return text[:at] + rng.randbytes(rng.randint(1, 4)) + text[at:]
        case 2 if text.startswith(b"{") and len(text) > 2:
            # Each key twice.
            return text[:-1] + b"," + json.dumps(document).encode()[1:-1] + b"}"
        case 3:
            return rng.choice(OTHER_TEXTS)
        case 4 if rng.random() < 0.2:
            return rng.choice(NESTED_TEXTS)
        case _:
            return text


def _paths(value: Any, place: _Path) -> Iterator[_Path]:
    """The places of all values in a decoded JSON document, the document itself first."""
    yield place
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _paths(one, (*place, key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _paths(one, (*place, index))


def _changed(rng: random.Random, document: Any, place: _Path, value: Callable[[random.Random], Any]) -> Any:
    if not place:
        return value(rng) if rng.random() < 0.3 else document
    holder = document
    for step in place[:-1]:
        holder = holder[step]
    key: Any = place[-1]
    how = rng.randrange(6)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, list):
        holder.extend(copy.deepcopy(holder[key]) for _ in range(rng.randint(1, 20)))
    elif how == 1:
        holder[f"other-{rng.randrange(9)}"] = value(rng)
    else:
        holder[key] = value(rng)
    return document
