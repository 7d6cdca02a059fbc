"""A folder that may be local or on any Hadoop file system, by Spark's own means."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession


class HadoopFiles:
    """Files below one folder, by their paths in it.

    Whatever fails in the file system is raised as py4j's `Py4JJavaError`.

    Args:
        spark: the session.
        folder: a local path, or one with the scheme of a Hadoop file system.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self.folder = folder.rstrip("/") or "/"
        jvm = spark._jvm
        assert jvm is not None
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        self._files: Any = self._path(self.folder).getFileSystem(spark._jsc.hadoopConfiguration())

    def of(self, name: str) -> str:
        """The whole path of one."""
        return f"{self.folder}/{name}"

    def exists(self, name: str) -> bool:
        """Whether there is such a file or folder."""
        return bool(self._files.exists(self._at(name)))

    def names(self, name: str = "") -> list[str]:
        """Names of what a folder holds; none if there is no such folder."""
        return [status.getPath().getName() for status in self._list(name)]

    def matching(self, pattern: str) -> list[str]:
        """Whole paths of what fits a pattern with `*`, which stands for any name in a folder."""
        return [status.getPath().toString() for status in self._files.globStatus(self._at(pattern)) or ()]

    def size_bytes(self, name: str) -> int:
        """All files right in a folder together."""
        return sum(int(status.getLen()) for status in self._list(name) if status.isFile())

    def modified_ms(self, name: str) -> int:
        """When a file was written, milliseconds since 1970."""
        return int(self._files.getFileStatus(self._at(name)).getModificationTime())

    def delete(self, name: str) -> None:
        """Take away a file, or a folder with all it holds; nothing if there is none."""
        self._files.delete(self._at(name), True)

    def move(self, name: str, into: str, as_name: str) -> None:
        """Give a file its place, whole or not at all.

        Raises OSError if the file system refuses.
        """
        self._files.mkdirs(self._at(into))
        if not self._files.rename(self._at(name), self._at(f"{into}/{as_name}")):
            raise OSError(f"{self.of(name)} cannot be moved to {self.of(into)}/{as_name}")

    def _at(self, name: str) -> Any:
        return self._path(self.of(name) if name else self.folder)

    def _list(self, name: str) -> list[Any]:
        try:
            return list(self._files.listStatus(self._at(name)))
        except Py4JJavaError as error:
            if "FileNotFoundException" in str(error.java_exception):
                return []
            raise
