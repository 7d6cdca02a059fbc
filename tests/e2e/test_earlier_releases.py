"""A release of an earlier chart is upgraded to this one, and what it kept stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dev.chart_values import CHART
from dev.e2e import Images
from tests.e2e.conftest import remove_objects
from tests.e2e.kstatus import status_of
from tests.e2e.kubectl import Manifest, apply, kubectl, read, run
from tests.e2e.release import NAME, NAMESPACE, Release
from tests.e2e.world import APPLICATIONS, Toolbox, active, await_ready, connection, layout, operate, operation, topic
from tests.support.release_snapshot import chart_of, releases

pytestmark = [pytest.mark.whole, pytest.mark.timeout(900)]

TOPIC = "older"


@pytest.fixture(params=releases(), ids=lambda release: release.name)
def earlier(request: pytest.FixtureRequest, images: Images, toolbox: Toolbox) -> Iterator[Release]:
    """A release of an earlier chart."""
    folder: Path = request.param
    rights = _rights()
    apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, *rights)
    made = Release(images, {})
    made.install(chart_of(folder))
    yield made
    remove_objects()
    made.uninstall()
    kubectl("delete", "--filename", "-", text=yaml.safe_dump_all(rights))


def _rights() -> list[Manifest]:
    """What the operator of this tree may do: it is its image that runs, since those of releases cannot be had here, and
    it asks for kinds that an earlier chart gives no right to.
    """
    values = ["--set", f"fullnameOverride=of-this-tree,serviceAccount.name={NAME}"]
    text = run(
        "helm", "template", NAME, str(CHART), "--namespace", NAMESPACE, "--show-only", "templates/rbac.yaml", *values
    )
    return [document for document in yaml.safe_load_all(text) if document]


def test_objects_of_an_earlier_chart_stay_healthy_through_the_upgrade(earlier: Release, toolbox: Toolbox) -> None:
    """Hazards C4 and C41."""
    apply(connection(), topic(TOPIC), namespace=APPLICATIONS)
    await_ready("scalabletopic", TOPIC)
    before = layout(TOPIC)
    with toolbox.traffic(TOPIC):
        earlier.upgrade()
        found = await_ready("scalabletopic", TOPIC)
        assert status_of(found) == "Current"
        assert layout(TOPIC) == before
        assert read("crd", "scalabletopics.scalabletopics.io")["status"]["storedVersions"] == ["v1alpha1"]
        operate(operation("after", TOPIC, type="Split", split={"segment": active(TOPIC)[0]}))
