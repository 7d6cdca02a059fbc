"""A tar file that is written piece by piece; every text in it is redacted."""

from __future__ import annotations

import io
import os
import tarfile
import time
from pathlib import Path
from typing import Self

from scalable_topics_operator.cli.redacted_text import redacted_text


class Bundle:
    """A new gzipped tar file, which only its user can read. Use as a context manager.

    Args:
        file: where it is to be.
        folder: in which everything is, inside.

    Raises OSError if it cannot be made, or is there.
    """

    def __init__(self, file: Path, folder: str) -> None:
        self._file = file
        self._folder = folder
        self._errors: list[str] = []
        self._output = os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._tar = tarfile.open(fileobj=self._output, mode="w:gz")  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._output:
            self._tar.close()
        if kind is not None:
            self._file.unlink(missing_ok=True)

    def add(self, place: str, text: str) -> None:
        """Add a text, without what looks like a credential.

        Args:
            place: its path inside.
            text: of it.
        """
        content = redacted_text(text).encode()
        entry = tarfile.TarInfo(f"{self._folder}/{place}")
        entry.size, entry.mtime, entry.mode = len(content), int(time.time()), 0o600
        self._tar.addfile(entry, io.BytesIO(content))

    def failed(self, what: str, why: str) -> None:
        """Remember what could not be had."""
        self._errors.append(f"{what}: {' '.join(why.split())}")

    def add_errors(self) -> None:
        """Add what could not be had."""
        self.add("errors.txt", "\n".join(self._errors) + "\n" if self._errors else "nothing was lacking\n")
