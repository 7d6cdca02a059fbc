"""Docker and podman tell sizes in words."""

from __future__ import annotations

import pytest

from dev.errors import DevError
from dev.images.engine import size_in_bytes


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0 B", 0),
        ("0B", 0),
        ("512 B", 512),
        ("55.9 MB", 55_900_000),
        ("1.2GB", 1_200_000_000),
        ("4.5kB", 4_500),
        ("1234", 1234),
    ],
)
def test_a_size_in_words(text: str, size_bytes: int) -> None:
    assert size_in_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["", "much", "3 TB", "-1 B"])
def test_what_is_no_size_is_told(text: str) -> None:
    with pytest.raises(DevError, match="is no size"):
        size_in_bytes(text)
