"""How commands are read from pages, and how what they print is compared."""

from __future__ import annotations

import pytest

from tests.support.documentation.pages import Fence, slug
from tests.support.documentation.shell import Command, commands_of, differences


def _fence(text: str, language: str = "sh") -> Fence:
    return Fence("docs/x.md", 7, language, "here", text)


def test_commands_of_several_lines_are_one_each() -> None:
    text = "# first\none --a \\\n    --b   # said\ntwo <<'EOF'\nit's\nEOF\nthree 'a\nb'\n"
    found = commands_of([_fence(text), _fence("a: 1\n", "yaml"), _fence("no command\n", "text")])
    assert [command.text for command in found] == [
        "one --a \\\n    --b   # said",
        "two <<'EOF'\nit's\nEOF",
        "three 'a\nb'",
    ]
    assert found[0].key == "one --a --b"


def test_with_prompts_the_rest_is_what_they_print() -> None:
    found = commands_of([_fence("$ one\nfirst\nsecond\n$ two \\\n  more\n$ three\n  third\n", "console")])
    assert [(command.text, command.output) for command in found] == [
        ("one", "first\nsecond"),
        ("two \\\n  more", ""),
        ("three", "  third"),
    ]


def test_what_is_no_whole_command_is_refused() -> None:
    with pytest.raises(ValueError, match="no complete command"):
        commands_of([_fence("one <<EOF\nwithout an end\n")])


@pytest.mark.parametrize(
    ("wanted", "printed", "is_same"),
    [
        ("NAME  AGE\na  2m", "NAME   AGE\na      14s\n", True),
        ("a  2m", "b  2m", False),
        ("a  2m", "a  b  2m", False),
        ("at …:8081", "at 127.0.0.1:8081", True),
        ("at …:8081", "at 127.0.0.1:8082", False),
        ("first\n…\nlast", "first\none\ntwo\nlast", True),
        ("first\n…\nlast", "first\none\ntwo", False),
        ("", "anything", False),
        ("…", "", True),
        ("Split 0→4,5  1h2m", "Split 0→4,5  3s", True),
    ],
)
def test_what_is_printed_is_compared(wanted: str, printed: str, is_same: bool) -> None:
    assert (differences(Command("x", "x", wanted), printed) == []) is is_same


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("What you need", "what-you-need"),
        ("Brokers, from Pulsar 4 to 5", "brokers-from-pulsar-4-to-5"),
        ("The `stopics` [tool](x.md)", "the-stopics-tool"),
        ("Node's own_name", "nodes-own_name"),
    ],
)
def test_headings_have_the_names_that_github_gives_them(heading: str, name: str) -> None:
    assert slug(heading) == name
