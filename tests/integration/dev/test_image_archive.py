"""An image is an archive that any container tool can load: layers, and what it says of itself."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

from dev.node.archive import LAYER_FILE, Image, add_file, finish_layer


def layer(directory: Path, name: str, content: bytes) -> Path:
    made = directory / name
    made.mkdir()
    with tarfile.open(made / LAYER_FILE, "w") as archive:
        add_file(archive, "program", content, mode=0o755)
    finish_layer(made)
    return made


def written(image: Image) -> dict[str, bytes]:
    stream = io.BytesIO()
    image.write(stream)
    stream.seek(0)
    with tarfile.open(fileobj=stream) as archive:
        content = {member.name: archive.extractfile(member) for member in archive}
        return {name: file.read() for name, file in content.items() if file is not None}


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_an_archive_holds_layers_in_order_under_their_true_digests(tmp_path: Path) -> None:
    layers = [layer(tmp_path, "lower", b"1"), layer(tmp_path, "upper", b"2")]
    image = Image("localhost/x:1", layers, ["/program", "run"], {"A": "b"}, user="7:0", directory="/home")
    files = written(image)
    blobs = {f"sha256:{name.rpartition('/')[2]}": file for name, file in files.items() if name.startswith("blobs/")}
    assert all(digest(file) == name for name, file in blobs.items())
    (index,) = json.loads(files["index.json"])["manifests"]
    assert index["annotations"] == {"io.containerd.image.name": "localhost/x:1"}
    manifest = json.loads(blobs[index["digest"]])
    contents = [(each / LAYER_FILE).read_bytes() for each in layers]
    assert [blobs[each["digest"]] for each in manifest["layers"]] == contents
    assert [each["size"] for each in manifest["layers"]] == [len(content) for content in contents]
    told = json.loads(blobs[manifest["config"]["digest"]])
    assert told["rootfs"] == {"type": "layers", "diff_ids": [digest(content) for content in contents]}
    assert told["config"]["Entrypoint"] == ["/program", "run"]
    assert (told["config"]["User"], told["config"]["WorkingDir"]) == ("7:0", "/home")
    assert "A=b" in told["config"]["Env"]


def test_files_of_a_layer_are_roots(tmp_path: Path) -> None:
    with tarfile.open(layer(tmp_path, "layer", b"1") / LAYER_FILE) as archive:
        (entry,) = archive
    assert (entry.uid, entry.gid, entry.uname, entry.mode) == (0, 0, "", 0o755)
