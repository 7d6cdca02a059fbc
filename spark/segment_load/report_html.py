"""One page of HTML that needs nothing besides: style, tables and charts are in it, and no script. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

# Colours that those who see fewer of them can tell apart, 3:1 against the ground at least, light and dark.
_STYLE = """
:root{color-scheme:light dark;--ground:#fff;--ink:#1b1f24;--soft:#57606a;--rule:#d0d7de;--band:#f6f8fa;
--c0:#0b6bb5;--c1:#b3480c;--c2:#0a7d5c;--c3:#9a4580;--bound:#b42318}
@media (prefers-color-scheme:dark){:root{--ground:#12161c;--ink:#e6e9ed;--soft:#a3adb8;--rule:#39424d;--band:#1a2029;
--c0:#6cb6f5;--c1:#f29e57;--c2:#4cc9a0;--c3:#e08cc4;--bound:#ff8d83}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1100px;padding:24px 20px 64px;background:var(--ground);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;margin:0 0 4px}h2{font-size:1.2rem;margin:40px 0 8px;border-bottom:1px solid var(--rule)}
h3{font-size:1rem;margin:28px 0 4px;overflow-wrap:anywhere}p{margin:6px 0;max-width:80ch}.soft{color:var(--soft)}
.wide{overflow-x:auto;margin:12px 0}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:5px 10px;text-align:right;border-bottom:1px solid var(--rule);vertical-align:top}
th{text-align:right;background:var(--band);font-weight:600;vertical-align:bottom}
th:first-child,td:first-child,td.words,th.words{text-align:left}td:first-child{overflow-wrap:anywhere;min-width:12em}
td.words{min-width:22em}
.beside{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:8px 24px}
figure{margin:12px 0;min-width:0}figcaption{font-weight:600;font-size:.9rem}
svg.chart{width:100%;height:auto;display:block}svg text{fill:var(--soft);font:11px system-ui,sans-serif}
svg text.value{fill:var(--ink)}svg text.bound{fill:var(--bound)}
line.grid{stroke:var(--rule);stroke-width:1}.line{fill:none;stroke-width:2;stroke-linejoin:round}
line.bound{stroke:var(--bound);stroke-width:1.5;stroke-dasharray:5 4}
.line.c0{stroke:var(--c0)}.line.c1{stroke:var(--c1)}.line.c2{stroke:var(--c2)}.line.c3{stroke:var(--c3)}
.bar.c0{fill:var(--c0)}.bar.c1{fill:var(--c1)}.bar.c2{fill:var(--c2)}.bar.c3{fill:var(--c3)}
ul.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 18px;margin:2px 0;padding:0;font-size:.85rem}
"""


def page(title: str, subtitle: str, sections: Iterable[str]) -> str:
    """A whole page.

    Args:
        title: of the page.
        subtitle: what it is about, in a line.
        sections: HTML of each.
    """
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f'<h1>{escape(title)}</h1><p class="soft">{escape(subtitle)}</p>' + "\n".join(sections) + "</body></html>\n"
    )


def section(title: str, *parts: str, level: int = 2) -> str:
    """A heading and what belongs to it, as HTML."""
    return f"<h{level}>{escape(title)}</h{level}>" + "".join(parts)


def paragraph(text: str) -> str:
    """Words."""
    return f"<p>{escape(text)}</p>"


def side_by_side(parts: Iterable[str]) -> str:
    """Charts beside each other where there is room."""
    return f'<div class="beside">{"".join(parts)}</div>'


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, words: Sequence[int] = ()) -> str:
    """A table; the first column names the rows.

    Args:
        columns: headings.
        rows: texts.
        words: columns that hold sentences rather than numbers.
    """

    def cell(tag: str, index: int, text: str) -> str:
        kind = ' class="words"' if index in words else ""
        scope = ' scope="col"' if tag == "th" else ""
        return f"<{tag}{kind}{scope}>{escape(text)}</{tag}>"

    head = "".join(cell("th", index, text) for index, text in enumerate(columns))
    body = "".join(f"<tr>{''.join(cell('td', index, text) for index, text in enumerate(row))}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
