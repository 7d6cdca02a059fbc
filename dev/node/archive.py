"""Container images as archives: layers that are tar files, with what the image says of itself."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
EPOCH = "1970-01-01T00:00:00Z"
DIGEST_FILE = "digest"
LAYER_FILE = "layer.tar"
BLOBS = "blobs/sha256"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIGURATION_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
# By which containerd knows how an image is to be called.
NAME_ANNOTATION = "io.containerd.image.name"


@dataclass(frozen=True, slots=True)
class Image:
    """An image.

    Attributes:
        name: with its tag.
        layers: directories, each with a layer as `finish_layer` left it; the lowest first.
        entrypoint: what a container runs.
        environment: variables beside PATH.
        user: who runs it, as `uid:gid`.
        directory: where it runs.
    """

    name: str
    layers: Sequence[Path]
    entrypoint: Sequence[str]
    environment: dict[str, str] = field(default_factory=dict)
    user: str = "0:0"
    directory: str = "/"

    def write(self, stream: IO[bytes]) -> None:
        """Write it as an archive in the layout of the Open Container Initiative."""
        digests = [(layer / DIGEST_FILE).read_text() for layer in self.layers]
        configuration = self._configuration(digests)
        sizes = [(layer / LAYER_FILE).stat().st_size for layer in self.layers]
        layers = [_descriptor(LAYER_TYPE, *each) for each in zip(digests, sizes, strict=True)]
        described = {"config": _part(CONFIGURATION_TYPE, configuration), "layers": layers}
        manifest = _json({"schemaVersion": 2, "mediaType": MANIFEST_TYPE, **described})
        index = _part(MANIFEST_TYPE, manifest) | {"annotations": {NAME_ANNOTATION: self.name}}
        with tarfile.open(fileobj=stream, mode="w|") as archive:
            add_file(archive, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
            for layer, digest in zip(self.layers, digests, strict=True):
                archive.add(layer / LAYER_FILE, arcname=f"{BLOBS}/{digest}")
            for content in (configuration, manifest):
                add_file(archive, f"{BLOBS}/{hashlib.sha256(content).hexdigest()}", content)
            add_file(archive, "index.json", _json({"schemaVersion": 2, "manifests": [index]}))

    def _configuration(self, digests: Sequence[str]) -> bytes:
        variables = {"PATH": SEARCH_PATH} | self.environment
        content = {
            "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "created": EPOCH,
            "config": {
                "Env": [f"{name}={value}" for name, value in variables.items()],
                "Entrypoint": list(self.entrypoint),
                "User": self.user,
                "WorkingDir": self.directory,
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
        }
        return _json(content)


def add_file(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    """Add a file of root's to a layer."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def finish_layer(directory: Path) -> None:
    """Note the digest of the layer in a directory, which is asked for at every import."""
    with (directory / LAYER_FILE).open("rb") as layer:
        digest = hashlib.file_digest(layer, "sha256")
    (directory / DIGEST_FILE).write_text(digest.hexdigest())


def _part(media_type: str, content: bytes) -> dict[str, object]:
    return _descriptor(media_type, hashlib.sha256(content).hexdigest(), len(content))


def _descriptor(media_type: str, digest: str, size: int) -> dict[str, object]:
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": size}


def _json(content: object) -> bytes:
    return json.dumps(content).encode()
