"""The real cluster that integration tests run against.

`python -m dev run` starts one for a whole test run and names it in the environment, so that parallel workers
share it. Without that, each session starts its own. Two variables must both be set for an existing cluster to
be used; a KUBECONFIG alone, which a developer may have for other reasons, is not touched.

The brokers are of Pulsar 4, or with `--pulsar 5` of Pulsar 5, where the same tests run with backend Classic. Those
marked `both_lines` are told twice: with these brokers, and (then marked `native`) with a broker of Pulsar 5.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from dev.access import KubernetesAccess, PulsarAccess, existing_cluster
from dev.broker_settings import PulsarLine
from dev.instance import LocalCluster, Shape
from tests.support.pulsar_view import PulsarView

_MAIN, _FIVE = "main", "five"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tell a test marked `both_lines` once more with a broker of Pulsar 5."""
    if metafunc.definition.get_closest_marker("both_lines"):
        lines = [
            pytest.param(_MAIN, id=pytest.HIDDEN_PARAM),
            pytest.param(_FIVE, id="pulsar-5", marks=pytest.mark.native),
        ]
        metafunc.parametrize("pulsar", lines, indirect=True, scope="session")


@pytest.fixture(scope="session")
def kubernetes(request: pytest.FixtureRequest) -> Iterator[KubernetesAccess]:
    """The API server, with an administrator's kubeconfig. Shared: use names of your own in it."""
    if existing_cluster():
        yield KubernetesAccess.from_environment()
        return
    with ExitStack() as stack:
        yield _started(stack, request.session, Shape(brokers=0)).kubernetes.access


@pytest.fixture(scope="session")
def own_brokers(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """The brokers of a session that is given none, with all that its tests ask for."""
    marks = {mark.name for item in request.session.items for mark in item.iter_markers()}
    shape = Shape(kubernetes=False, brokers=2 if "two_brokers" in marks else 1, native="native" in marks)
    with ExitStack() as stack, pytest.MonkeyPatch.context() as environment:
        cluster = _started(stack, request.session, shape)
        if cluster.native:
            for name, value in cluster.native.native_environment().items():
                environment.setenv(name, value)
        yield cluster


@pytest.fixture(scope="session")
def pulsar(request: pytest.FixtureRequest) -> PulsarAccess:
    """The brokers, with a token for each role. Shared: use names of your own, and stop no broker."""
    if getattr(request, "param", _MAIN) == _FIVE:
        access: PulsarAccess = request.getfixturevalue("native_pulsar")
        return access
    if existing_cluster():
        return PulsarAccess.from_environment()
    cluster: LocalCluster = request.getfixturevalue("own_brokers")
    return cluster.pulsar.access


@pytest.fixture
def line(pulsar: PulsarAccess) -> PulsarLine:
    """Which Pulsar these brokers are: for what they do differently."""
    return _line_of(pulsar)


@pytest.fixture(scope="session")
def native_pulsar(request: pytest.FixtureRequest) -> PulsarAccess:
    """The broker of Pulsar 5, with the tokens of the others. Shared like them; who uses it is marked `native`."""
    if existing_cluster():
        access = PulsarAccess.native_from_environment()
    else:
        cluster: LocalCluster = request.getfixturevalue("own_brokers")
        access = cluster.native
    if access is None:
        pytest.fail(
            "the cluster has no broker of Pulsar 5: start it with --native or --pulsar 5 (make up NATIVE=1),"
            " and mark the test `native`",
            pytrace=False,
        )
    return access


@pytest.fixture(autouse=True)
def _native_pulsar_where_marked(request: pytest.FixtureRequest) -> None:
    """A test marked `native` fails where there is no broker of Pulsar 5, whether it uses the fixture or not."""
    if request.node.get_closest_marker("native"):
        request.getfixturevalue("native_pulsar")


@pytest.fixture
async def view(pulsar: PulsarAccess) -> AsyncIterator[PulsarView]:
    """A superuser's plain view of the brokers."""
    async with PulsarView(pulsar.admin_url, pulsar.superuser_token) as client:
        yield client


@pytest.fixture
def local_cluster(request: pytest.FixtureRequest) -> Iterator[Callable[[Shape], LocalCluster]]:
    """A function that starts a cluster for this test alone, whose servers it may stop, kill and restart.

    Its brokers are of Pulsar 5 where those that the test run shares are.
    """
    with ExitStack() as stack:
        yield lambda shape: _started(stack, request.session, _of_this_run(shape))


def _of_this_run(shape: Shape) -> Shape:
    if not existing_cluster() or shape.native:
        return shape
    return replace(shape, pulsar=_line_of(PulsarAccess.from_environment()))


def _line_of(brokers: PulsarAccess) -> PulsarLine:
    return PulsarLine.FIVE if brokers == PulsarAccess.native_from_environment() else PulsarLine.FOUR


def _started(stack: ExitStack, session: pytest.Session, shape: Shape) -> LocalCluster:
    cluster = LocalCluster.private(shape)
    stack.callback(lambda: cluster.stop(keep_logs=session.testsfailed > 0))
    cluster.start()
    return cluster
