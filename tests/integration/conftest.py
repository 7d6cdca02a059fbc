"""The real cluster that integration tests run against.

`python -m dev run` starts one for a whole test run and names it in the environment, so that parallel workers
share it. Without that, each session starts its own. Two variables must both be set for an existing cluster to
be used; a KUBECONFIG alone, which a developer may have for other reasons, is not touched.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack

import pytest

from dev.access import KubernetesAccess, PulsarAccess, existing_cluster
from dev.instance import LocalCluster, Shape
from tests.support.pulsar_view import PulsarView


@pytest.fixture(scope="session")
def kubernetes(request: pytest.FixtureRequest) -> Iterator[KubernetesAccess]:
    """The API server, with an administrator's kubeconfig. Shared: use names of your own in it."""
    if existing_cluster():
        yield KubernetesAccess.from_environment()
        return
    with ExitStack() as stack:
        yield _started(stack, request.session, Shape(brokers=0)).kubernetes.access


@pytest.fixture(scope="session")
def pulsar(request: pytest.FixtureRequest) -> Iterator[PulsarAccess]:
    """The brokers, with a token for each role. Shared: use names of your own, and stop no broker."""
    if existing_cluster():
        yield PulsarAccess.from_environment()
        return
    needs_two = any(item.get_closest_marker("two_brokers") for item in request.session.items)
    with ExitStack() as stack:
        shape = Shape(kubernetes=False, brokers=2 if needs_two else 1)
        yield _started(stack, request.session, shape).pulsar.access


@pytest.fixture
async def view(pulsar: PulsarAccess) -> AsyncIterator[PulsarView]:
    """A superuser's plain view of the brokers."""
    async with PulsarView(pulsar.admin_url, pulsar.superuser_token) as client:
        yield client


@pytest.fixture
def local_cluster(request: pytest.FixtureRequest) -> Iterator[Callable[[Shape], LocalCluster]]:
    """A function that starts a cluster for this test alone, whose servers it may stop, kill and restart."""
    with ExitStack() as stack:
        yield lambda shape: _started(stack, request.session, shape)


def _started(stack: ExitStack, session: pytest.Session, shape: Shape) -> LocalCluster:
    cluster = LocalCluster.private(shape)
    stack.callback(lambda: cluster.stop(keep_logs=session.testsfailed > 0))
    cluster.start()
    return cluster
