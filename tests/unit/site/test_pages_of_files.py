"""Links to files of the repository, the navigation, and what is looked for in finished pages."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from mkdocs.exceptions import PluginError

from dev.site import finished, repository_files
from dev.site.navigation import expanded


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "one.yaml").write_text("a: 1\n")
    return tmp_path


def test_a_linked_file_becomes_a_page_and_the_link_leads_there() -> None:
    text = "[one](../../examples/one.yaml), [a page](../topics.md#names), [elsewhere](https://x.org), [here](#x)"
    origin = PurePosixPath("docs/howto/x.md")
    assert repository_files.with_links_to_pages(text, origin, "howto/x.md") == (
        "[one](../files/examples/one.yaml.md), [a page](../topics.md#names), [elsewhere](https://x.org), [here](#x)"
    )
    assert repository_files.page_of(PurePosixPath("examples/one.yaml")) == "files/examples/one.yaml.md"


def test_linked_markdown_is_read_on_and_leads_to_pages(repository: Path) -> None:
    (repository / "examples" / "README.md").write_text("[one](one.yaml), [names](../docs/topics.md#names)\n")
    texts = [("[examples](../examples/README.md)", PurePosixPath("docs/x.md"))]

    def read(path: PurePosixPath) -> str:
        return (repository / path).read_text()

    found = repository_files.all_linked_files(texts, repository, read)
    assert found == [PurePosixPath("examples/README.md"), PurePosixPath("examples/one.yaml")]
    assert repository_files.render(found[0], read(found[0])) == "[one](one.yaml.md), [names](../../topics.md#names)\n"


@pytest.mark.parametrize("target", ["../examples/two.yaml", "../examples", "../../outside"])
def test_a_link_to_nothing_is_refused(repository: Path, target: str) -> None:
    with pytest.raises(PluginError, match="no file of the repository"):
        repository_files.linked_files(f"[x]({target})", PurePosixPath("docs/x.md"), repository)


def test_a_file_with_fences_of_its_own_is_shown_whole() -> None:
    page = repository_files.render(PurePosixPath("a.py"), "'''\n```\ncode\n```\n'''\n")
    assert page == "# a.py\n\n````python\n'''\n```\ncode\n```\n'''\n````\n"


def test_a_folder_in_the_navigation_stands_for_its_pages() -> None:
    navigation = [{"Home": "index.md"}, "cli.md", {"Rest": [{"All": "all/"}, {"None": "none/"}]}]
    assert expanded(navigation, ["index.md", "all/b.md", "all/a.md", "all/below/c.md"]) == [
        {"Home": "index.md"},
        "cli.md",
        {"Rest": [{"All": ["all/a.md", "all/b.md"]}]},
    ]


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ('<script src="https://cdn.example.com/x.js"></script>', "loads https://cdn.example.com/x.js from elsewhere"),
        ('<link rel="stylesheet" href="//fonts.example.com/x.css">', "loads //fonts.example.com/x.css from elsewhere"),
        ("<p>before\n- a list that is none</p>", "shows Markdown as it is written: '- a list that is none'"),
        ("<p>before\n| a | table |</p>", "shows Markdown as it is written: '| a | table |'"),
    ],
)
def test_a_page_that_loads_or_misreads_something_is_told(html: str, problem: str) -> None:
    assert finished.problems(html) == [problem]


def test_an_ordinary_page_has_no_problems() -> None:
    head = '<link rel="canonical" href="https://x.example.com/">'
    body = '<a href="https://x.example.com">x</a><p>a - b</p><code>- x</code>'
    assert finished.problems(head + body) == []
