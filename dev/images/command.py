"""`python -m dev image`: build the images, tell their sizes, and write what is in them."""

from collections.abc import Sequence
from pathlib import Path

from dev.console import say
from dev.errors import DevError
from dev.images.base import LOCAL, local_base
from dev.images.bill import write_bill
from dev.images.engine import Engine
from dev.images.project import build, image_repository, project_version

# The stage that every target begins with, on the bare base.
FIRST_OWN_STEP = "org.opencontainers.image.licenses"

# What an image may have above its base.
LIMITS_BYTES = {"operator": 100_000_000}


def make_images(targets: Sequence[str], base: str | None, bills: Path) -> int:
    """Build images under the version of this tree and return the exit code.

    Args:
        targets: of the Dockerfile.
        base: an image; `local` makes one on this machine; the Dockerfile's own if None.
        bills: where a bill of materials of each is written.
    """
    engine = Engine.found()
    chosen = local_base(engine) if base == LOCAL else base
    for target in targets:
        name = f"{image_repository(target)}:{project_version()}"
        say(f"building {name}")
        build(engine, target, name, chosen)
        file = bills / f"scalable-topics-{target}.cdx.json"
        count = write_bill(engine, name, file)
        whole, own = engine.size_bytes(name), engine.size_above_bytes(name, FIRST_OWN_STEP)
        limit = LIMITS_BYTES.get(target)
        if limit is not None and own > limit:
            raise DevError(f"{name} has {megabytes(own)} MB above its base, and may have {megabytes(limit)}")
        print(f"{name}: {megabytes(whole)} MB, of which {megabytes(own)} MB above its base; {count} things in {file}")
    return 0


def megabytes(size_bytes: int) -> int:
    """Return a size in millions of bytes, rounded up."""
    return -(-size_bytes // 1_000_000)
