from urllib.parse import unquote, unquote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from scalable_topics_operator.backends.admin.paths import (
    lookup_path,
    namespace_of,
    namespace_path,
    schema_path,
    subscription_path,
    topic_path,
)
from scalable_topics_operator.operations.errors import BackendRefused

PART = st.text(min_size=1, max_size=40).filter(lambda text: text not in (".", ".."))


@given(st.lists(PART, min_size=1, max_size=3).map(tuple))
def test_every_part_of_a_name_is_quoted_and_stays_one_part(rest: tuple[str, ...]) -> None:
    path = topic_path("persistent://t/n/x", *rest)
    assert str(URL("http://h" + path, encoded=True)) == "http://h" + path
    parts = path.removeprefix("/admin/v2/persistent/").split("/")
    assert [unquote(part) for part in parts] == ["t", "n", "x", *rest]
    assert path.isascii()
    assert not set(path) & set("?#\\ ")


def test_paths_of_the_kinds_of_objects() -> None:
    assert namespace_path("t/n", "permissions") == "/admin/v2/namespaces/t/n/permissions"
    assert schema_path("persistent://t/n/a_b", "schemas") == "/admin/v2/schemas/t/n/a_b/schemas"
    assert namespace_of("persistent://t/n/x") == "t/n"


@given(PART)
def test_names_that_brokers_decode_twice_are_quoted_twice(name: str) -> None:
    path = subscription_path("persistent://t/n/x", name, "resetcursor")
    parts = path.removeprefix("/admin/v2/persistent/").split("/")
    assert parts[:4] == ["t", "n", "x", "subscription"]
    assert unquote_plus(unquote(parts[4])) == name
    assert parts[5:] == ["resetcursor"]
    path = schema_path(f"persistent://t/n/{name}", "schemas")
    parts = path.removeprefix("/admin/v2/schemas/").split("/")
    assert [*parts[:2], unquote_plus(unquote(parts[2])), *parts[3:]] == ["t", "n", name, "schemas"]


@pytest.mark.parametrize("part", ["", ".", ".."])
def test_parts_that_servers_fold_away_are_refused(part: str) -> None:
    with pytest.raises(BackendRefused, match="cannot be part of a name"):
        topic_path("persistent://t/n/x", "subscription", part)


@pytest.mark.parametrize("name", ["topic://t/n/x", "persistent://t/n", "t/n/x", "non-persistent://t/n/x"])
def test_other_names_than_persistent_ones_are_refused(name: str) -> None:
    with pytest.raises(BackendRefused, match="is not a name like"):
        topic_path(name)
    with pytest.raises(BackendRefused, match="is not a name like"):
        namespace_path("t")


def test_a_segment_is_looked_up_by_one_part_of_a_path() -> None:
    assert lookup_path("persistent://t/n/a b") == "/lookup/v2/topic/persistent/t/n/a%20b"
    assert lookup_path("segment://t/n/x/0000-7fff-0") == "/lookup/v2/topic/segment/t/n/x%2F0000-7fff-0"
    with pytest.raises(BackendRefused):
        lookup_path("topic://t/n/x")
