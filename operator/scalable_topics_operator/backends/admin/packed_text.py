"""The text of a large answer, kept as it was sent and unpacked piece by piece."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Iterator

_PART_BYTES = 256 * 1024
_SLICE_BYTES = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS


class PackedText:
    """A text of many megabytes, of which only a part is unpacked at a time.

    Args:
        content: as it came.
        encoding: the `Content-Encoding` that it came in; empty for none.
        most_bytes: how large it may be unpacked.
    """

    def __init__(self, content: bytes = b"", encoding: str = "", most_bytes: int = 0) -> None:
        self._content = content
        self._encoding = encoding.strip().lower()
        self._most_bytes = most_bytes

    def parts(self) -> Iterator[str]:
        """The text, a part after the other; what is no UTF-8 is replaced.

        Raises ValueError for what is not packed as it is said to be, was cut off, or is larger than it may be; what
        came before has been told by then.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        size_bytes = 0
        for part in self._unpacked():
            size_bytes += len(part)
            if size_bytes > self._most_bytes:
                raise ValueError(f"it is larger than {self._most_bytes} bytes")
            yield decoder.decode(part)
        yield decoder.decode(b"", final=True)

    def head(self, most_bytes: int) -> str:
        """How the text begins, in so many bytes at most; as much of it as can be unpacked."""
        head = b""
        try:
            for part in self._unpacked():
                head += part
                if len(head) >= most_bytes:
                    break
        except ValueError:
            pass
        return head[:most_bytes].decode("utf-8", "replace")

    def _unpacked(self) -> Iterator[bytes]:
        if self._encoding in ("", "identity"):
            for at in range(0, len(self._content), _PART_BYTES):
                yield self._content[at : at + _PART_BYTES]
        elif self._encoding in ("gzip", "x-gzip"):
            yield from _gunzipped(self._content)
        else:
            raise ValueError("it came in an encoding that nobody asked for")


def _gunzipped(content: bytes) -> Iterator[bytes]:
    unpacking = zlib.decompressobj(_GZIP)
    try:
        # In slices: what is left of what it was given is copied each time. Nothing of what is packed is given out only
        # after the last of it has been taken in: a checksum comes behind it.
        for at in range(0, len(content), _SLICE_BYTES):
            packed = content[at : at + _SLICE_BYTES]
            while packed:
                if unpacking.eof:
                    raise ValueError("there is more behind its end")
                if part := unpacking.decompress(packed, _PART_BYTES):
                    yield part
                packed = unpacking.unused_data or unpacking.unconsumed_tail
    except zlib.error as error:
        raise ValueError(f"it is not packed as it is said to be: {error}") from None
    if not unpacking.eof:
        raise ValueError("it was cut off")
