"""Topics made, changed and deleted through the gateway's Service, by a service account that may (R32, R33)."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from tests.e2e.kubectl import apply, exists, kubectl, until
from tests.e2e.release import GATEWAY_URL, Release
from tests.e2e.world import APPLICATIONS, TOPIC_API, Toolbox, active, await_ready, connection, rights_of_the_dashboard

pytestmark = [pytest.mark.whole, pytest.mark.timeout(600)]

TOPIC, SUBSCRIPTION = "by-rest", "billing"
_TOKEN = "/var/run/gateway/token"


def test_a_topic_lives_by_rest_for_those_who_may(release: Release, toolbox: Toolbox) -> None:
    mapping = {"pulsarNamespace": "public/default", "namespace": APPLICATIONS}
    apply(connection(pulsarNamespaceMappings=[mapping]), namespace=APPLICATIONS)
    await_ready("scalabletopicconnection", "pulsar")
    url = f"{GATEWAY_URL}{TOPIC_API}/{TOPIC}"

    def ask(method: str, path: str = "") -> tuple[int, str]:
        return toolbox.ask(f"{url}{path}", _TOKEN, method)

    def done(method: str, path: str = "") -> None:
        until(lambda: ask(method, path), lambda answer: answer[0] == HTTPStatus.NO_CONTENT, what=f"{method} {path}")

    # The account may see topics and consume, and no more: the API server is asked as it.
    assert ask("PUT")[0] == HTTPStatus.FORBIDDEN
    assert not exists("scalabletopic", TOPIC, APPLICATIONS)
    rights = rights_of_the_dashboard(TOPIC, ["*"], ["get", "list", "create", "delete"])
    apply(*rights, namespace=APPLICATIONS)
    try:
        done("PUT", "?numInitialSegments=2")
        await_ready("scalabletopic", TOPIC)
        done("POST", "/split/0")
        assert active(TOPIC) == [1, 2, 3]
        done("PUT", f"/subscriptions/{SUBSCRIPTION}?type=STREAM")
        assert ask("GET", f"/subscriptions/{SUBSCRIPTION}")[0] == HTTPStatus.OK
        done("DELETE", f"/subscriptions/{SUBSCRIPTION}")
        assert ask("GET", f"/subscriptions/{SUBSCRIPTION}")[0] == HTTPStatus.NOT_FOUND
        done("DELETE")
        assert not exists("scalabletopic", TOPIC, APPLICATIONS)
        assert not any(TOPIC in segment for segment in toolbox.segments_on_broker())
    finally:
        for each in rights:
            kubectl("delete", each["kind"], each["metadata"]["name"], "--namespace", APPLICATIONS)
