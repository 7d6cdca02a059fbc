"""R24: which Pulsar namespaces can hold scalable topics."""

from __future__ import annotations

import pytest

from scalable_topics_operator.backends.classic.fitness import most_topics, why_too_many, why_unfit


@pytest.mark.parametrize("clusters", [[], ["local"]])
@pytest.mark.parametrize("threshold_bytes", [None, 0])
def test_an_ordinary_namespace_is_fit(clusters: list[str], threshold_bytes: int | None) -> None:
    assert not why_unfit("shop/orders", clusters, threshold_bytes)
    assert most_topics(None) == 0


def test_a_replicated_namespace_is_not() -> None:
    """Hazard A6-25601."""
    why = why_unfit("shop/orders", ["west", "east"], None)
    assert why.startswith("namespace shop/orders is replicated to east, west: ")
    assert why.endswith("use a namespace that is in one cluster")


def test_a_namespace_that_compacts_is_not() -> None:
    assert "compacts its topics" in why_unfit("shop/orders", ["local"], 1)


def test_a_limit_of_topics_is_kept_to_the_last_one() -> None:
    assert most_topics(10) == 10
    assert most_topics(-1) == 0
    assert not why_too_many("shop/orders", 10, 8, 2)
    assert not why_too_many("shop/orders", 0, 1000, 1000)
    assert why_too_many("shop/orders", 10, 8, 3) == (
        "namespace shop/orders may have 10 topics (maxTopicsPerNamespace) and has 8: 3 more do not fit; raise the limit"
    )
