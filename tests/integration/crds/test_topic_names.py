"""The rules for topic names in the CRD and the kernel judge alike."""

from __future__ import annotations

import pytest

from scalable_topics.layout import LayoutArgumentError, TopicName, validate_scalable_name
from tests.integration.crds.topic_rows import BAD_TOPICS, GOOD_TOPICS


@pytest.mark.parametrize("name", GOOD_TOPICS)
def test_kernel_takes_what_the_crd_accepts(name: str) -> None:
    validate_scalable_name(TopicName.parse(name))


@pytest.mark.parametrize("name", [name for _, names in BAD_TOPICS for name in names])
def test_kernel_refuses_what_the_crd_refuses(name: str) -> None:
    with pytest.raises(LayoutArgumentError):
        validate_scalable_name(TopicName.parse(name))
