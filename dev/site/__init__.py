"""The documentation as a site: mkdocs builds it, and these modules let it take the pages as GitHub shows them."""
