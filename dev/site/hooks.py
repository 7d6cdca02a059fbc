"""What mkdocs calls while it builds the site; mkdocs.yml names this file."""

from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

from dev.site import finished, repository_files
from dev.site.dialect import for_mkdocs
from dev.site.navigation import expanded

_REPOSITORY = Path(__file__).parents[2]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name headings as GitHub does, so that links lead to the same place there and here."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file of the repository that a page links to, and list folders in the navigation."""
    pages = list(files.documentation_pages())
    config.nav = expanded(list(config.nav or ()), [page.src_uri for page in pages])
    texts = [(page.content_string, _origin(page)) for page in pages]
    for file in repository_files.all_linked_files(texts, _REPOSITORY, _read):
        content = repository_files.render(file, _read(file))
        files.append(File.generated(config, repository_files.page_of(file), content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Bring a page into the dialect of mkdocs, with links to pages alone."""
    if page.file.generated_by is None:
        markdown = repository_files.with_links_to_pages(markdown, _origin(page.file), page.file.src_uri)
    return for_mkdocs(markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that is not as it should be."""
    found = finished.problems(output)
    if found:
        raise PluginError(f"{page.file.src_uri}: {'; '.join(found[:5])}")
    return output


def _origin(page: File) -> PurePosixPath:
    return PurePosixPath("docs", page.src_uri)


def _read(file: PurePosixPath) -> str:
    return (_REPOSITORY / file).read_text()
