"""Files that are written from the program: what they should be is compared with what they are, or written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Target:
    """Files that a folder is to have.

    Args:
        folder: where they are.
        files: their texts, by name.
        others: names of files of the same suffixes that may be there, too; whatever else is there of these goes.
    """

    folder: Path
    files: Mapping[str, str]
    others: Collection[str] = ()


def outdated(folder: Path, files: Mapping[str, str], *, others: Collection[str] = ()) -> list[Path]:
    """Files missing in `folder`, different from `files`, or of the same suffix and neither among them nor `others`."""
    suffixes = {Path(name).suffix for name in files}
    wrong = [folder / name for name, text in files.items() if _read(folder / name) != text]
    if folder.is_dir():
        wrong += [path for path in folder.iterdir() if path.suffix in suffixes and path.name not in {*files, *others}]
    return sorted(wrong)


def write(folder: Path, files: Mapping[str, str], *, others: Collection[str] = ()) -> list[Path]:
    """Bring `folder` to `files`, writing only what differs; answers what was written or removed."""
    changed = outdated(folder, files, others=others)
    folder.mkdir(parents=True, exist_ok=True)
    for path in changed:
        if path.name in files:
            path.write_text(files[path.name], encoding="utf-8")
        else:
            path.unlink()
    return changed


def bring(targets: Iterable[Target], *, check: bool) -> int:
    """Bring all targets up to date, or only compare them, and print what differs; answers the exit code of that.

    Args:
        targets: what is to be where.
        check: change nothing; a difference is a failure.
    """
    change = outdated if check else write
    changed = [path for one in targets for path in change(one.folder, one.files, others=one.others)]
    for path in changed:
        print(f"{path}: {'is not up to date' if check else 'written' if path.is_file() else 'removed'}")
    return 1 if check and changed else 0


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
