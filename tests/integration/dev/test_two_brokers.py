"""What a standalone cannot show: topics of one namespace on two brokers, and redirects between them."""

import uuid

import pytest

from dev.access import PulsarAccess
from dev.pulsar_admin import PulsarAdmin

pytestmark = pytest.mark.two_brokers
TOPICS = 16
# To the leader, from it to the owner, and one to spare while ownership settles.
MAXIMUM_REDIRECTS = 3


@pytest.fixture
def admins(pulsar: PulsarAccess) -> list[PulsarAdmin]:
    assert len(pulsar.broker_admin_urls) == 2
    return [PulsarAdmin(url, pulsar.superuser_token) for url in pulsar.broker_admin_urls]


def test_each_broker_lists_both(admins: list[PulsarAdmin], pulsar: PulsarAccess) -> None:
    expected = sorted(url.removeprefix("http://") for url in pulsar.broker_admin_urls)
    for admin in admins:
        assert sorted(admin.ask("GET", "brokers/local").json()) == expected


def test_topics_of_a_namespace_spread_and_the_other_broker_redirects(
    admins: list[PulsarAdmin], pulsar: PulsarAccess
) -> None:
    """An admin call to the wrong broker is answered 307 with the address of a listed one, never served."""
    namespace = f"tests/{uuid.uuid4().hex[:10]}"
    admins[0].create(f"namespaces/{namespace}")
    assert admins[0].ask("GET", f"namespaces/{namespace}").json()["bundles"]["numBundles"] > 1
    owners = set()
    for number in range(TOPICS):
        topic = f"persistent/{namespace}/t-{number}"
        owner = create(admins, pulsar.broker_admin_urls, topic)
        assert admins[owner].ask("GET", f"{topic}/stats").status == 200
        answer = admins[1 - owner].ask("GET", f"{topic}/stats")
        assert answer.status == 307
        assert answer.location is not None
        assert answer.location.startswith(pulsar.broker_admin_urls)
        owners.add(owner)
    assert owners == {0, 1}


def create(admins: list[PulsarAdmin], urls: tuple[str, ...], topic: str) -> int:
    """Create a topic, following redirects from the first broker on, and return which broker served the call."""
    broker, path = 0, topic
    for _ in range(MAXIMUM_REDIRECTS + 1):
        answer = admins[broker].ask("PUT", path)
        if answer.status == 204:
            return broker
        assert answer.status == 307, answer
        assert answer.location is not None
        broker = next(index for index, url in enumerate(urls) if answer.location.startswith(f"{url}/"))
        path = answer.location.removeprefix(f"{urls[broker]}/admin/v2/")
    raise AssertionError(f"{topic}: more than {MAXIMUM_REDIRECTS} redirects")
