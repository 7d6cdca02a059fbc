"""What is in the operator's image, and what a container of it may do."""

from __future__ import annotations

import json

from tests.e2e.world import Toolbox

LOOK = """
import importlib.util, json, os, shutil
def writes(folder):
    try:
        open(os.path.join(folder, "file"), "w").close()
    except OSError:
        return False
    return True
print(json.dumps({
    "uid": os.getuid(),
    "java": shutil.which("java"),
    "modules": [name for name in ("pyspark", "typer", "rich", "pytest") if importlib.util.find_spec(name)],
    "writable": [folder for folder in ("/", "/opt/scalable-topics", "/tmp") if writes(folder)],
}))
"""


def test_it_is_slim_and_runs_as_nobody_in_particular(toolbox: Toolbox) -> None:
    assert json.loads(toolbox.execute("python3", "-c", LOOK)) == {
        "uid": 10001,
        "java": None,
        "modules": [],
        "writable": ["/tmp"],
    }
