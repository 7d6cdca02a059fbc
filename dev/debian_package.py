"""Files of a package of Debian, taken out of it: what is not installed starts no server."""

import os
import shutil
from pathlib import Path

from dev.errors import DevError
from dev.steps import run_step

_RELEASE = Path("/etc/debian_version")
_OPTIONS = ("-qq", "-o", "DPkg::Lock::Timeout=300")


def release() -> str | None:
    """Return Debian's release where its packages can be fetched (as root, by apt-get), else None."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None or not _RELEASE.exists():
        return None
    return _RELEASE.read_text().strip()


def extract(package: str, files: dict[str, str], into: Path) -> None:
    """Fetch a package and take files out of it.

    Args:
        package: its name.
        files: path in the package -> name in `into`.
        into: an existing directory.

    Raises:
        DevError: there is no such package to be had, or not such a file in it.
    """
    folder = into / "package"
    folder.mkdir()
    download = ["apt-get", *_OPTIONS, "download", package]
    try:
        run_step(f"{package}-package", download, directory=folder)
    except DevError:
        # A machine that is new knows of no package yet.
        run_step("apt-update", ["apt-get", *_OPTIONS, "update"], directory=folder)
        run_step(f"{package}-package", download, directory=folder)
    (archive,) = folder.glob("*.deb")
    run_step(f"{package}-files", ["dpkg", "-x", str(archive), str(folder / "files")], directory=folder)
    for path, name in files.items():
        found = folder / "files" / path
        if not found.is_file():
            raise DevError(f"Debian's package {package} has no {path}")
        shutil.move(found, into / name)
    shutil.rmtree(folder)
