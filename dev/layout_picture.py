"""A layout drawn as ranges over epochs, for a terminal."""

from collections.abc import Sequence

from rich.text import Text

from scalable_topics.layout import Segment, SegmentLayout

_COLOURS = ("blue", "green", "magenta", "cyan", "yellow", "red", "bright_blue", "bright_green", "bright_magenta")
_RING = 65536


def draw(layouts: Sequence[SegmentLayout], columns: int = 96) -> Text:
    """Draw one row an epoch, the ring from left to right, a block a segment with its id.

    Args:
        layouts: the layouts, oldest first.
        columns: width of the ring in characters.
    """
    picture = Text()
    picture.append(f"{'epoch':>6}  {'0000':<{columns - 4}}ffff\n", style="dim")
    for layout in layouts:
        picture.append(f"{layout.epoch:>6}  ")
        for segment in layout.active:
            picture.append_text(_block(segment, columns))
        picture.append("\n")
    return picture


def _block(segment: Segment, columns: int) -> Text:
    first = segment.hash_range.start * columns // _RING
    last = (segment.hash_range.end + 1) * columns // _RING
    width = max(1, last - first)
    # The edge shows where a block begins even without colours.
    label = "▏" + str(segment.segment_id)[: width - 1].center(width - 1) if width > 1 else "▏"
    colour = _COLOURS[segment.segment_id % len(_COLOURS)]
    return Text(label, style=f"black on {colour}")
