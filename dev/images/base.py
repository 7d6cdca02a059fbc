"""Debian with Python, made on this machine: what images are built on where no registry can be reached."""

import platform
from pathlib import Path

from dev import prerequisites
from dev.cache import content_key, ensure
from dev.console import say
from dev.images.engine import Engine
from dev.steps import run_step

# What is said in place of an image to have one made here.
LOCAL = "local"
REPOSITORY = "localhost/scalable-topics-base"
ROOT_FILE = "root.tar"
# The release decides which Python there is: the one of the Dockerfile's ordinary base.
DEBIAN_RELEASE = "bookworm"
DEBIAN_PACKAGES = ("python3", "ca-certificates")
UNWANTED = ("usr/share/doc", "usr/share/locale", "usr/share/man")
LEFT_BY_INSTALLING = ("var/cache/apt", "var/lib/apt/lists", "var/log")


def local_base(engine: Engine) -> str:
    """Return the name of an image with Debian's Python and apt, making it if it is not there."""
    key = content_key([], DEBIAN_RELEASE, *DEBIAN_PACKAGES, *UNWANTED, *LEFT_BY_INSTALLING, platform.machine())
    name = f"{REPOSITORY}:{key}"
    if engine.inspect(name) is None:
        engine.import_root(ensure("image-base", key, _build) / ROOT_FILE, name)
    return name


def _build(into: Path) -> None:
    say("making a base image of Debian with Python (once a machine; about a minute)")
    command = [
        *(str(prerequisites.mmdebstrap()), "--mode=root", "--variant=apt", "--format=tar"),
        f"--include={','.join(DEBIAN_PACKAGES)}",
        *(f"--dpkgopt=path-exclude=/{directory}/*" for directory in UNWANTED),
        *(f'--customize-hook=rm -rf "$1/{directory}"/*' for directory in LEFT_BY_INSTALLING),
        *(DEBIAN_RELEASE, str(into / ROOT_FILE)),
    ]
    run_step("image-base", command, directory=into)
