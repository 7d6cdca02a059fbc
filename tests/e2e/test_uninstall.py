"""Uninstalling hangs at nothing and keeps data; installing again takes over what is there."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import remove_objects
from tests.e2e.kubectl import apply, exists, kubectl, read, read_all, until
from tests.e2e.release import NAMESPACE, Release
from tests.e2e.world import (
    APPLICATIONS,
    Toolbox,
    await_ready,
    connection,
    layout,
    operate,
    operation,
    segment_topics,
    topic,
)

pytestmark = pytest.mark.timeout(900)

TOPIC = "kept"
DEFINITION = "scalabletopics.scalabletopics.io"


@pytest.fixture(autouse=True)
def installed(release: Release) -> None:
    release.ensure_installed()


def test_with_objects_left_it_says_so_and_all_data_stays_and_a_new_release_goes_on(
    release: Release, toolbox: Toolbox
) -> None:
    """Hazards C9 and C68."""
    apply(connection(), topic(TOPIC), namespace=APPLICATIONS)
    await_ready("scalabletopic", TOPIC)
    with toolbox.traffic(TOPIC):
        operate(operation("split-kept-0", TOPIC, type="Split", split={"segment": 0}))
        before, topics = layout(TOPIC), segment_topics(TOPIC)
        said = release.uninstall()
        assert "1 ScalableTopic(s) are there" in said, "what is left is named"
        assert f"namespace {APPLICATIONS}, 1: {TOPIC}\n" in said
        assert exists("crd", DEFINITION)
        assert layout(TOPIC) == before
        assert set(topics) <= toolbox.segments_on_broker()
        release.install()
        await_ready("scalabletopic", TOPIC)
        assert layout(TOPIC) == before, "it is taken over as it was"
        operate(operation("split-kept-1", TOPIC, type="Split", split={"segment": 1}))


def test_a_topic_deleted_while_there_is_no_operator_goes_when_one_is_back(release: Release, toolbox: Toolbox) -> None:
    """Hazard C9."""
    apply(topic("going", deletionPolicy="Delete"), namespace=APPLICATIONS)
    await_ready("scalabletopic", "going")
    topics = set(segment_topics("going"))
    release.uninstall()
    kubectl("delete", "scalabletopic", "going", "--namespace", APPLICATIONS, "--wait=false")
    assert exists("scalabletopic", "going", APPLICATIONS)
    assert topics <= toolbox.segments_on_broker()
    release.install()
    until(lambda: exists("scalabletopic", "going", APPLICATIONS), lambda there: not there, what="the object goes")
    until(lambda: topics & toolbox.segments_on_broker(), lambda left: left == set(), what="the topics go")


def test_without_objects_nothing_of_it_is_left_but_the_definitions(release: Release, toolbox: Toolbox) -> None:
    """Hazard C68."""
    remove_objects()
    made = {(each["kind"], each["metadata"]["name"]) for each in release.manifests()}
    assert ("Deployment", "scalable-topics") in made
    release.uninstall()
    for kind, name in made:
        namespace = None if kind.startswith("Cluster") or kind == "CustomResourceDefinition" else NAMESPACE
        assert exists(kind, name, namespace) == (kind == "CustomResourceDefinition"), (kind, name)
    assert read_all("jobs", NAMESPACE) == []
    assert read("namespace", NAMESPACE)["status"]["phase"] == "Active"
    assert not [name for name in toolbox.segments_on_broker() if "/segment" in name]
