"""The images of this tree: `operator` and `spark`, targets of the Dockerfile."""

import subprocess
import tomllib
from pathlib import Path

from dev.cache import content_key
from dev.console import say
from dev.images.engine import Engine

REPOSITORY = Path(__file__).parents[2]
TARGETS = ("operator", "spark")
# What the Dockerfile copies, as `.dockerignore` has it.
FILES = ("Dockerfile", "pyproject.toml", "uv.lock", "README.md", "LICENSE", "CHANGELOG.md")
FOLDERS = ("client", "operator", "spark")
GIT_TIMEOUT_SECONDS = 30


def image_repository(target: str) -> str:
    """Return the name of a target's image without its tag. Docker and podman both take it for one of this machine."""
    return f"localhost/scalable-topics-{target}"


def project_version() -> str:
    """Return the version in pyproject.toml."""
    version: str = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    return version


def tree_image(engine: Engine, target: str, base: str | None) -> str:
    """Return the name of a target's image as the tree is now, building it unless it is there.

    Its tag changes with its content, so that nothing runs an older one under the same name.
    """
    name = f"{image_repository(target)}:{_tree_key(base)}"
    if engine.inspect(name) is None:
        say(f"building the image of the {target} (the first time 1 to 4 minutes)")
        build(engine, target, name, base)
    return name


def build(engine: Engine, target: str, name: str, base: str | None) -> None:
    """Build a target's image, on the Dockerfile's own base unless another one is named. Raises DevError."""
    arguments = {"VERSION": project_version(), "REVISION": _revision()}
    if base is not None:
        arguments["BASE_IMAGE"] = base
    engine.build(REPOSITORY / "Dockerfile", REPOSITORY, target, name, arguments)


def _tree_key(base: str | None) -> str:
    found = (file for folder in FOLDERS for file in (REPOSITORY / folder).rglob("*"))
    sources = sorted(file for file in found if file.is_file() and "__pycache__" not in file.parts)
    places = (str(file.relative_to(REPOSITORY)) for file in sources)
    return content_key([*(REPOSITORY / file for file in FILES), *sources], base or "", *places)


def _revision() -> str:
    command = ["git", "-C", str(REPOSITORY), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_TIMEOUT_SECONDS, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() if done.returncode == 0 else "unknown"
