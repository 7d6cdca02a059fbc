"""The image of the container that holds a pod's namespaces, made without any other."""

import tarfile
from pathlib import Path

from dev.cache import content_key, ensure
from dev.node.archive import LAYER_FILE, Image, add_file, finish_layer
from dev.node.artifacts import pause_program

PAUSE_IMAGE = "localhost/pause:local"


def pause_image() -> Image:
    """Return it, building it unless it is in the cache."""
    program = pause_program()

    def build(into: Path) -> None:
        with tarfile.open(into / LAYER_FILE, "w") as layer:
            add_file(layer, "pause", program.read_bytes(), mode=0o755)
        finish_layer(into)

    return Image(PAUSE_IMAGE, [ensure("pause-layer", content_key([program]), build)], ["/pause"], user="65535:65535")
