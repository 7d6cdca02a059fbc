"""Files of a package of Debian, taken out of it: what is not installed starts no server."""

import shutil
from pathlib import Path

from dev.errors import DevError
from dev.prerequisites import APT_OPTIONS, DEBIAN_RELEASE, can_install
from dev.steps import run_step


def release() -> str | None:
    """Return Debian's release where its packages can be fetched (as root, by apt-get), else None."""
    return DEBIAN_RELEASE.read_text().strip() if can_install() else None


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
    download = ["apt-get", *APT_OPTIONS, "download", package]
    try:
        run_step(f"{package}-package", download, directory=folder)
    except DevError:
        # A machine that is new knows of no package yet.
        run_step("apt-update", ["apt-get", *APT_OPTIONS, "update"], directory=folder)
        run_step(f"{package}-package", download, directory=folder)
    (archive,) = folder.glob("*.deb")
    run_step(f"{package}-files", ["dpkg", "-x", str(archive), str(folder / "files")], directory=folder)
    for path, name in files.items():
        found = folder / "files" / path
        if not found.is_file():
            raise DevError(f"Debian's package {package} has no {path}")
        shutil.move(found, into / name)
    shutil.rmtree(folder)
