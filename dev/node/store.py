"""Images unpacked once a machine: every node begins with them, and loads only what has changed above."""

import shutil
from pathlib import Path

from dev.cache import cache_root, content_key, ensure
from dev.console import say
from dev.node.archive import Image
from dev.node.runtime import PROCESS, ROOT, Runtime
from dev.processes import ProcessTable


def image_store(pause: Image, base: Image) -> Path:
    """Return the directory of a stopped container runtime that holds these images."""
    key = content_key([], base.name, *(layer.name for layer in pause.layers))
    return ensure("image-store", key, lambda into: _fill(into, pause, base))


def _fill(into: Path, pause: Image, base: Image) -> None:
    say("node, 3 of 5: unpacking that image (once for each uv.lock; half a minute or more)")
    processes = ProcessTable(into / "pids", cache_root() / "logs" / "image-store")
    runtime = Runtime(into, processes)
    try:
        runtime.start()
        for image in (pause, base):
            runtime.load(image)
    finally:
        processes.stop(PROCESS)
        runtime.unmount(into)
    for left in [each for each in into.iterdir() if each.name != ROOT]:
        if left.is_dir():
            shutil.rmtree(left)
        else:
            left.unlink()
