"""The cluster of the end-to-end tests, which `python -m dev e2e` names: a broker in it, a pod to use it, releases."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from dev.e2e import Images
from tests.e2e.kubectl import CommandFailed, helm, kubectl, read_all
from tests.e2e.release import NAMESPACE, SELECTOR, Release, Values
from tests.e2e.report import Report
from tests.e2e.world import APPLICATIONS, Toolbox, install_pulsar, make_toolbox

# By short names: the plural of ScalableTopic is the name of the category, too, which means all kinds to kubectl.
OBJECTS = ("stsub", "segop", "stopic", "stpolicy", "stconn")
LOG_LINES = 40


@pytest.fixture(scope="session")
def images() -> Images:
    """What pods run."""
    found = Images.from_environment()
    if not found.operator:
        pytest.fail("the end-to-end tests are run by `make e2e`: they need a cluster with images")
    return found


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest) -> Iterator[Report]:
    """What the run shows; a page of evidence comes of a whole one in which nothing has failed."""
    made = Report()
    yield made
    if not request.session.testsfailed:
        made.write()


@pytest.fixture(scope="session")
def pulsar_tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the tokens that the broker takes."""
    return tmp_path_factory.mktemp("pulsar") / "tokens"


@pytest.fixture(scope="session")
def toolbox(images: Images, pulsar_tokens: Path, report: Report) -> Toolbox:
    """A pod that sends, receives and asks; there is a broker to do that with."""
    install_pulsar(images.pulsar, pulsar_tokens)
    return make_toolbox(images.operator, pulsar_tokens, report)


@pytest.fixture(scope="module")
def values() -> Values:
    """Values of the chart besides images; a module has its own by a fixture of this name."""
    return {}


@pytest.fixture(scope="module")
def release(images: Images, toolbox: Toolbox, values: Values) -> Iterator[Release]:
    """The chart, installed for a module; afterwards it is gone, with all objects that need it to go."""
    made = Release(images, values)
    said = made.install()
    assert "kubectl" in said, "the notes tell what to do next"
    yield made
    if read_all("stopic"):
        made.ensure_installed()
        remove_objects()
    if made.pods():
        made.uninstall()


def remove_objects() -> None:
    """Delete all objects of ours, with the topics on the broker, while there is an operator to do it."""
    for topic in read_all("stopic"):
        where = (topic["metadata"]["name"], "--namespace", topic["metadata"]["namespace"])
        kubectl("patch", "scalabletopic", *where, "--type=merge", '--patch={"spec":{"deletionPolicy":"Delete"}}')
    for kind in OBJECTS:
        kubectl("delete", kind, "--all", "--all-namespaces", "--timeout=120s")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What judges all tests together comes after them."""
    items.sort(key=lambda item: item.get_closest_marker("audited") is not None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what the cluster looks like to the report of a test that failed."""
    report = yield
    if report.failed:
        report.sections.append(("the cluster", _look()))
    return report


def _look() -> str:
    commands = (
        ("get", "pods", "--all-namespaces", "--output=wide"),
        ("get", "stopic,segop,stconn", "--all-namespaces", "--output=wide"),
        ("get", "leases", "--namespace", NAMESPACE),
        ("get", "events", "--namespace", NAMESPACE, "--sort-by=.lastTimestamp"),
        ("get", "events", "--namespace", APPLICATIONS, "--sort-by=.lastTimestamp"),
        (
            "logs",
            "--namespace",
            NAMESPACE,
            "--all-containers",
            "--prefix",
            f"--tail={LOG_LINES}",
            f"--selector={SELECTOR}",
        ),
    )
    seen = []
    for command in commands:
        try:
            seen.append(f"$ kubectl {' '.join(command)}\n{kubectl(*command)}")
        except CommandFailed as error:
            seen.append(str(error))
    seen.append(helm("list", "--all-namespaces"))
    return "\n".join(seen)
