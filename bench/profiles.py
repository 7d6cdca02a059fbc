"""An operator, or this process, under Python's profiler, unknown to the product, and what of its profile is kept.

The profiler is that of the standard library (for an operator `python -m cProfile -m scalable_topics_operator`). It sees
the thread of the event loop, not those that renew Leases or belong to pulsar-client, and makes what it watches about
twice as slow: a run with a profile tells where time goes, and its speeds are not kept.
"""

import cProfile
import pstats
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

_SHOWN = 30
# What comes before the name of a package or a module of the standard library, which differs between machines.
_BEFORE_PACKAGE = re.compile(
    r"/\S*?/(?=(?:bench/\w+\.py|(?:scalable_topics(?:_operator)?|site-packages|lib-dynload|python3\.\d+)/))"
)
_READ_FROM = re.compile(r"(?m)^\w{3} \w{3} .*\.prof\n")
_SITE_PACKAGES = re.compile(r"(?:python3\.\d+/)?site-packages/")


def under_profiler(profile: Path | None) -> tuple[str, ...]:
    """What Python runs an operator under, so that it leaves a profile behind; nothing for None."""
    if profile is None:
        return ()
    profile.parent.mkdir(parents=True, exist_ok=True)
    return "-m", "cProfile", "-o", str(profile)


@contextmanager
def profiled(profile: Path) -> Iterator[None]:
    """Leave a profile of what this thread does meanwhile, and its text."""
    profile.parent.mkdir(parents=True, exist_ok=True)
    with cProfile.Profile() as watching:
        yield
    watching.dump_stats(profile)
    keep_text(profile)


def keep_text(profile: Path) -> None:
    """Write the functions that took most beside a profile, such as `topics.txt` beside `topics.prof`.

    Its stem is the key of the section.
    """
    command = f"make bench ONLY={profile.stem} PROFILE_TO=<folder>\n\n"
    profile.with_suffix(".txt").write_text(command + rendered(profile), encoding="utf-8")


def rendered(profile: Path) -> str:
    """The functions of a profile that took most: by the time in them alone, and with all that they called.

    Args:
        profile: file that a profiler has written.
    """
    text = StringIO()
    stats = pstats.Stats(str(profile), stream=text)
    for order in ("tottime", "cumulative"):
        stats.sort_stats(order).print_stats(_SHOWN)
    return readable(text.getvalue())


def readable(text: str) -> str:
    """What the standard library prints of a profile, without where things are on this machine."""
    return _SITE_PACKAGES.sub("", _BEFORE_PACKAGE.sub("", _READ_FROM.sub("", text))).strip() + "\n"
