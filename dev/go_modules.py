"""Go modules of other people, fetched by their checksum."""

import json
import subprocess
from pathlib import Path

from dev import prerequisites
from dev.errors import DevError

TIMEOUT_SECONDS = 600


def download_module(module: str, checksum: str, directory: Path) -> Path:
    """Fetch a module.

    Args:
        module: path and version, as `github.com/owner/name@v1.2.3`.
        checksum: of the whole module, as `go.sum` has it: the version is this content and no other.
        directory: where Go runs; no module of its own needs to be there.

    Returns:
        Its directory in the module cache, which is read-only.

    Raises:
        DevError: it cannot be fetched, or is not what it was.
    """
    command = [str(prerequisites.go()), "mod", "download", "-json", module]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        raise DevError(f"{module} cannot be fetched: {done.stderr.strip()}") from None
    if "Error" in found:
        raise DevError(f"{module} cannot be fetched: {found['Error']}")
    if found["Sum"] != checksum:
        raise DevError(f"{module} has the checksum {found['Sum']}, not {checksum}")
    return Path(found["Dir"])
