"""The cache outside the tree: artefacts keyed by the content they are built from, built once a machine."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE_VARIABLE = "SCALABLE_TOPICS_CACHE"
KEY_LENGTH = 16


def cache_root() -> Path:
    """Return the cache directory: `$SCALABLE_TOPICS_CACHE`, else `scalable-topics` in the user's cache."""
    if configured := os.environ.get(CACHE_VARIABLE):
        return Path(configured).expanduser().resolve()
    user_cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(user_cache) / "scalable-topics"


def content_key(files: Iterable[Path], *facts: str) -> str:
    """Return a key that changes with the name or content of any file and with each fact."""
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\n".encode())
        digest.update(content)
    for fact in facts:
        digest.update(f"{len(fact)} {fact}\n".encode())
    return digest.hexdigest()[:KEY_LENGTH]


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock between processes. The kernel frees it when the holder dies.

    The holder may remove the file: who waited for it then starts over with the new one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("a") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_open_file(path, handle.fileno()):
                yield
                return


def ensure(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """Return the directory of an artefact, building it first if it is not there.

    Args:
        kind: what it is, such as `kube`; a directory of the cache.
        key: the content key of its inputs.
        build: fills the empty directory it is given; what it raises is passed on and nothing is cached.

    The directory appears by a rename, so it is complete or absent. Two processes never build the same one.
    """
    finished = cache_root() / kind / key
    if finished.is_dir():
        return finished
    with file_lock(cache_root() / "locks" / f"{kind}-{key}.lock"):
        if finished.is_dir():
            return finished
        unfinished = cache_root() / kind / f".building-{key}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        try:
            build(unfinished)
            unfinished.rename(finished)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return finished


def _is_open_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
