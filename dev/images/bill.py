"""A bill of materials of an image in CycloneDX 1.6, made of what is installed in it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from dev.images.engine import Engine

CONTENTS = Path(__file__).with_name("contents.py")


def bill_of_materials(name: str, digest: str, contents: Sequence[dict[str, str]]) -> dict[str, Any]:
    """Return the bill, the same for the same image.

    Args:
        name: of the image, with its tag.
        digest: of the image's configuration, `sha256:…`.
        contents: name, version and package URL of each thing in it.
    """
    purl = "purl"
    components = [
        {"type": "library", "bom-ref": each[purl], "name": each["name"], "version": each["version"], purl: each[purl]}
        for each in contents
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, digest)}",
        "version": 1,
        "metadata": {"component": {"type": "container", "bom-ref": digest, "name": name, "version": digest}},
        "components": components,
    }


def write_bill(engine: Engine, name: str, file: Path) -> int:
    """Write the bill of an image; answers how many things are in it. Raises DevError."""
    known = engine.inspect(name)
    assert known is not None
    listed = json.loads(engine.run(name, "python3", "-", script=CONTENTS.read_text()))
    identity = known["Id"] if known["Id"].startswith("sha256:") else f"sha256:{known['Id']}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(bill_of_materials(name, identity, listed), indent=1) + "\n")
    return len(listed)
