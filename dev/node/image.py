"""The images of a node, made on this machine: the pause image, and the load pipeline on Python, Java and Spark."""

import platform
import shutil
import subprocess
import tarfile
from pathlib import Path

from dev import prerequisites
from dev.cache import content_key, ensure
from dev.console import say
from dev.errors import DevError
from dev.node.archive import LAYER_FILE, Image, add_file, add_tree, finish_layer
from dev.node.artifacts import pause_program
from dev.steps import run_step

REPOSITORY = Path(__file__).parents[2]
IMAGE_FILES = Path(__file__).parent / "image_files"
SOURCES = ("client/scalable_topics", "operator/scalable_topics_operator", "spark/segment_load")
PAUSE_IMAGE = "localhost/pause:local"
PIPELINE_IMAGE = "localhost/segment-load"
BASE_IMAGE = "localhost/segment-load-base"
# The release decides which Python and which Java there are.
DEBIAN_RELEASE = "bookworm"
DEBIAN_PACKAGES = ("python3", "openjdk-17-jre-headless", "ca-certificates")
PYTHON_VERSION = "3.11"
PACKAGES = f"usr/local/lib/python{PYTHON_VERSION}/dist-packages"
SPARK_HOME = f"/{PACKAGES}/pyspark"
# Who Spark's own images run as.
SPARK_USER = "185"
HOME = "/opt/segment-load"
UNWANTED = ("usr/share/doc", "usr/share/locale", "var/cache/apt", "var/lib/apt/lists")
EXPORT_TIMEOUT_SECONDS = 120


def pause_image() -> Image:
    """Return the image of the container that holds a pod's namespaces."""
    program = pause_program()

    def build(into: Path) -> None:
        with tarfile.open(into / LAYER_FILE, "w") as layer:
            add_file(layer, "pause", program.read_bytes(), mode=0o755)
        finish_layer(into)

    return Image(PAUSE_IMAGE, [ensure("pause-layer", content_key([program]), build)], ["/pause"], user="65535:65535")


def pipeline_image() -> Image:
    """Return the image that runs the pipeline as it is in this tree, on what `uv.lock` says.

    Its tag changes with its content, so that a node never runs an older one under the same name.
    """
    return _image(PIPELINE_IMAGE, [*_base_layers(), _project_layer()])


def base_image() -> Image:
    """Return the image of what the pipeline runs on, which changes with `uv.lock` alone."""
    return _image(BASE_IMAGE, _base_layers())


def _base_layers() -> list[Path]:
    return [_system_layer(), _packages_layer()]


def _image(name: str, layers: list[Path]) -> Image:
    return Image(
        name=f"{name}:{content_key([], *(layer.name for layer in layers))}",
        layers=layers,
        entrypoint=[f"{HOME}/entrypoint.sh"],
        environment={"SPARK_HOME": SPARK_HOME, "PYSPARK_PYTHON": "/usr/bin/python3", "HOME": HOME},
        user=f"{SPARK_USER}:0",
        directory=HOME,
    )


def _system_layer() -> Path:
    key = content_key([], DEBIAN_RELEASE, *DEBIAN_PACKAGES, *UNWANTED, SPARK_USER, HOME, platform.machine())
    return ensure("image-system", key, _build_system)


def _build_system(into: Path) -> None:
    say("node, 1 of 5: an image with Debian, Python and Java (once a machine; 1 to 3 minutes)")
    # Spark asks the system for the name of its user.
    account = f"spark:x:{SPARK_USER}:0::{HOME}:/usr/sbin/nologin"
    command = [
        *(str(prerequisites.mmdebstrap()), "--mode=root", "--variant=essential", "--format=tar"),
        f"--include={','.join(DEBIAN_PACKAGES)}",
        *(f"--dpkgopt=path-exclude=/{directory}/*" for directory in UNWANTED if directory.startswith("usr/share")),
        f'--customize-hook=echo "{account}" >> "$1/etc/passwd"',
        *(f'--customize-hook=rm -rf "$1/{directory}"' for directory in UNWANTED if directory.startswith("var")),
        f'--customize-hook=mkdir -p "$1{HOME}" && chown {SPARK_USER}:0 "$1{HOME}"',
        *(DEBIAN_RELEASE, str(into / LAYER_FILE)),
    ]
    run_step("image-system", command, directory=into)
    finish_layer(into)


def _packages_layer() -> Path:
    requirements = _requirements()
    key = content_key([], requirements, _system_layer().name)
    return ensure("image-packages", key, lambda into: _build_packages(into, requirements))


def _requirements() -> str:
    options = ["--frozen", "--no-dev", "--no-emit-project", "--extra", "spark", "--no-annotate", "--no-header"]
    command = [str(prerequisites.uv()), "export", "--quiet", *options]
    timeout = EXPORT_TIMEOUT_SECONDS
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        raise DevError(f"uv export failed: {done.stderr.strip()}")
    return done.stdout


def _build_packages(into: Path, requirements: str) -> None:
    say("node, 2 of 5: Spark and the other Python packages for it (once for each uv.lock; 1 to 5 minutes)")
    root = into / "root"
    packages = root / PACKAGES
    listed = into / "requirements.txt"
    listed.write_text(requirements)
    root.mkdir()
    try:
        _unpack_system(root)
        command = [
            *(str(prerequisites.uv()), "pip", "install", "--target", str(packages), "--no-deps"),
            *("--python-version", PYTHON_VERSION, "--python-platform", f"{platform.machine()}-manylinux_2_28"),
            *("--require-hashes", "--requirement", str(listed)),
        ]
        run_step("image-packages", command, directory=REPOSITORY)
        # Containers run as somebody who may not write there, and would compile everything at every start.
        compiler = ["python3", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
        run_step("image-bytecode", ["chroot", str(root), *compiler, f"/{PACKAGES}"], directory=into)
        with tarfile.open(into / LAYER_FILE, "w") as layer:
            add_tree(layer, packages, PACKAGES)
        finish_layer(into)
    finally:
        shutil.rmtree(root)


def _unpack_system(root: Path) -> None:
    command = ["tar", "--extract", "--file", str(_system_layer() / LAYER_FILE), "--exclude", "./dev/*"]
    run_step("image-unpack", command, directory=root)


def _project_layer() -> Path:
    found = (file for source in SOURCES for file in (REPOSITORY / source).rglob("*"))
    modules = sorted(file for file in found if file.is_file() and "__pycache__" not in file.parts)
    files = sorted(file for file in IMAGE_FILES.iterdir() if file.is_file())
    places = [str(file.relative_to(REPOSITORY)) for file in modules]
    key = content_key([*modules, REPOSITORY / "pyproject.toml", *files], *places)
    return ensure("image-project", key, _build_project)


def _build_project(into: Path) -> None:
    say("putting this tree into the image of the pipeline")
    wheels = into / "wheels"
    run_step("image-wheel", [str(prerequisites.uv()), "build", "--wheel", "--out-dir", str(wheels)], REPOSITORY)
    packages = into / "packages"
    command = ["pip", "install", "--target", str(packages), "--no-deps", "--python-version", PYTHON_VERSION]
    run_step("image-project", [str(prerequisites.uv()), *command, *map(str, wheels.glob("*.whl"))], REPOSITORY)
    with tarfile.open(into / LAYER_FILE, "w") as layer:
        add_tree(layer, packages, PACKAGES)
        for file in sorted(IMAGE_FILES.iterdir()):
            add_file(layer, f"{HOME.removeprefix('/')}/{file.name}", file.read_bytes(), mode=0o755)
    finish_layer(into)
    shutil.rmtree(wheels)
    shutil.rmtree(packages)
