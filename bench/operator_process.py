"""An operator in a process of its own, as people run it, or under Python's profiler, unknown to the product.

The profiler is that of the standard library (`python -m cProfile -m scalable_topics_operator`). It sees the thread of
the event loop, not the one that renews Leases, and makes the operator about twice as slow: a run with a profile tells
where time goes, and its speeds are not kept.
"""

import asyncio
import os
import pstats
import re
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from io import StringIO
from pathlib import Path

_SHOWN = 30
_END_SECONDS = 60.0
# What comes before the name of a package or a module of the standard library, which differs between machines.
_BEFORE_PACKAGE = re.compile(r"/\S*?/(?=(?:scalable_topics(?:_operator)?|site-packages|lib-dynload|python3\.\d+)/)")
_READ_FROM = re.compile(r"(?m)^\w{3} \w{3} .*\.prof\n")
_SITE_PACKAGES = re.compile(r"(?:python3\.\d+/)?site-packages/")


@asynccontextmanager
async def operator_process(
    flags: Sequence[str], environment: Mapping[str, str] | None = None, *, profile: Path | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run an operator, and have it end orderly.

    Args:
        flags: of the operator.
        environment: variables beside those of this process.
        profile: file for what the profiler saw, such as `profiles/scale.prof`; the functions that took most go beside
            it as text, `profiles/scale.txt`. None for no profiler.

    Raises RuntimeError if the operator ended by itself, or does not end within a minute.
    """
    command = [sys.executable]
    if profile is not None:
        profile.parent.mkdir(parents=True, exist_ok=True)
        command += ["-m", "cProfile", "-o", str(profile)]
    process = await asyncio.create_subprocess_exec(
        *command, "-m", "scalable_topics_operator", *flags, env={**os.environ, **(environment or {})}
    )
    try:
        yield process
        if process.returncode is not None:
            raise RuntimeError(f"the operator has ended by itself, with {process.returncode}")
        process.terminate()
        async with asyncio.timeout(_END_SECONDS):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if profile is not None:
        profile.with_suffix(".txt").write_text(rendered(profile), encoding="utf-8")


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
