"""What brokers answer, collected from real ones (4.0.7 and 4.2.4), and what it becomes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.backends.admin.reasons import (
    MAX_REASON_CHARACTERS,
    About,
    error_for,
    is_authorization_refusal,
    is_subscription_missing,
    is_transient,
    reason_of,
)
from scalable_topics_operator.operations.errors import (
    AccessDenied,
    BackendError,
    BackendRefused,
    BackendUnavailable,
    ClientsAttached,
    LogFenced,
    NamespaceMissing,
    NameTaken,
    TopicEmpty,
    TopicMissing,
)

TOPIC = "persistent://t/n/x"

JETTY = """<html>
<head>
<meta http-equiv="Content-Type" content="text/html;charset=ISO-8859-1"/>
<title>Error 409 Incompatible schema: exists schema type AVRO, new schema type STRING</title>
</head>
<body><h2>HTTP ERROR 409 Incompatible schema: exists schema type AVRO, new schema type STRING</h2>
<table>
<tr><th>URI:</th><td>/admin/v2/schemas/t/n/x/schema</td></tr>
<tr><th>STATUS:</th><td>409</td></tr>
<tr><th>MESSAGE:</th><td>Incompatible schema: exists schema type AVRO, new schema type STRING</td></tr>
<tr><th>SERVLET:</th><td>org.glassfish.jersey.servlet.ServletContainer-524f5ea5</td></tr>
</table>
</body>
</html>
"""

STACK_TRACE = (
    "\n --- An unexpected error occurred in the server ---\n\n"
    "Message: Topic is temporarily unavailable\n\n"
    "Stacktrace:\n\norg.apache.pulsar.broker.service.BrokerServiceException$TopicFencedException: Topic\n"
    "\tat org.apache.pulsar.broker.service.persistent.PersistentTopic.close(PersistentTopic.java:1)\n"
)


@pytest.mark.parametrize(
    ("status", "content_type", "body", "reason"),
    [
        (404, "application/json", '{"reason":"Namespace not found"}', "Namespace not found"),
        (409, "text/html", JETTY, "Incompatible schema: exists schema type AVRO, new schema type STRING"),
        (
            409,
            "application/octet-stream",
            JETTY,
            "Incompatible schema: exists schema type AVRO, new schema type STRING",
        ),
        (500, "text/plain", STACK_TRACE, "Topic is temporarily unavailable"),
        (400, "text/plain", "Unrecognized token 'x'", "Unrecognized token 'x'"),
        (404, "application/json", "", "HTTP 404"),
        (500, "application/json", '{"reason":null}', "HTTP 500"),
        (500, "application/json", '{"reason":"HTTP 500 Internal Server Error"}', "HTTP 500 Internal Server Error"),
        (
            500,
            "text/plain",
            "java.util.concurrent.CompletionException: org.apache.pulsar.broker.web.RestException: Tenant not found\n"
            "\tat java.base/java.util.concurrent.CompletableFuture.x(CompletableFuture.java:1)",
            "Tenant not found",
        ),
        (502, "text/html", "<html><body>no title</body></html>", "HTTP 502"),
        (503, "text/html", "<html><head><title>503 &amp; away</title></head></html>", "503 & away"),
        (500, "application/json", '{"truncated', '{"truncated'),
        (400, "text/plain", "a\x00b\x1b[31mred\r\nline\u202eevil", "a b [31mred line evil"),
    ],
)
def test_reason_is_found_in_every_form_a_broker_uses(status: int, content_type: str, body: str, reason: str) -> None:
    assert reason_of(status, content_type, body) == reason


def test_reason_finds_the_message_line_of_a_stack_trace_inside_json() -> None:
    body = (
        '{"reason":"\\n --- An unexpected error occurred in the server ---\\n\\nMessage: boom\\n\\nStacktrace: at x"}'
    )
    assert reason_of(500, "application/json", body) == "boom"


@given(st.integers(300, 599), st.sampled_from(["application/json", "text/html", "text/plain"]), st.text(max_size=2000))
def test_r3_reason_is_one_short_printable_line_whatever_comes(status: int, content_type: str, body: str) -> None:
    reason = reason_of(status, content_type, body)
    assert 0 < len(reason) <= MAX_REASON_CHARACTERS
    assert reason.isprintable()


@pytest.mark.parametrize(
    ("status", "reason", "about", "expected"),
    [
        (404, "Namespace not found", About.TOPIC, NamespaceMissing),
        (404, "Namespace does not exist", About.NAMESPACE, NamespaceMissing),
        (404, "Tenant not found", About.NAMESPACE, NamespaceMissing),
        (404, "Tenant does not exist", About.TOPIC, NamespaceMissing),
        (404, "Policies not found for t/n namespace", About.TOPIC, NamespaceMissing),
        (404, f"Topic {TOPIC} not found", About.TOPIC, TopicMissing),
        # An absent topic named after the words that mark a missing namespace.
        (404, "Topic persistent://t/n/namespace not found", About.TOPIC, TopicMissing),
        (404, "Partitioned Topic not found: persistent://t/n/x has zero partitions", About.TOPIC, TopicMissing),
        (404, "HTTP 404", About.TOPIC, TopicMissing),
        (404, "HTTP 404", About.NAMESPACE, NamespaceMissing),
        (404, "Not Found", About.TOPIC, BackendRefused),
        (404, "Not Found", About.CLUSTER, BackendRefused),
        (409, "This topic already exists", About.TOPIC, NameTaken),
        (412, "Topic does not exist and cannot be auto-created", About.TOPIC, TopicMissing),
        (
            412,
            "Topic has 3 clients connected Including 2 consumers, 1 producers, and 0 replicators.",
            About.TOPIC,
            ClientsAttached,
        ),
        (412, "Topic has 3 connected producers/consumers", About.TOPIC, ClientsAttached),
        (412, "Subscription has active connected consumers", About.TOPIC, ClientsAttached),
        (500, "Topic has 1 client connected", About.TOPIC, ClientsAttached),
        (412, "Could not examine messages due to the total message is zero", About.TOPIC, TopicEmpty),
        (412, "Topic name is not valid", About.TOPIC, BackendRefused),
        (405, "Topic level policies is disabled", About.TOPIC, BackendRefused),
        (401, "Authentication required", About.CLUSTER, AccessDenied),
        (403, "Unauthorized to validateNamespaceOperation for operation [GET_TOPICS]", About.NAMESPACE, AccessDenied),
        (412, f"Can't find owner for topic {TOPIC}", About.TOPIC, BackendUnavailable),
        (500, "Namespace bundle t/n/0x00_0x40 is being unloaded", About.TOPIC, BackendUnavailable),
        (500, "something nobody has seen", About.TOPIC, BackendUnavailable),
        (503, "HTTP 503", About.CLUSTER, BackendUnavailable),
        (429, "Too many requests", About.CLUSTER, BackendUnavailable),
        (501, "HTTP 501", About.CLUSTER, BackendRefused),
    ],
)
def test_every_answer_becomes_the_error_that_tells_what_to_do(
    status: int, reason: str, about: About, expected: type[BackendError]
) -> None:
    error = error_for("do it to x", status, reason, about)
    assert type(error) is expected
    assert "do it to x" in str(error)
    assert str(status) in str(error)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (500, "Namespace bundle t/n/0x00000000_0x40000000 is being unloaded"),
        (412, "Namespace bundle t/n/0x00_0x40 is currently being unloaded"),
        (500, "Namespace bundle: t/n/0x00_0x40 is not owned by any broker."),
        (412, "Can't find owner for topic persistent://t/n/x"),
        (412, "Failed to find ownership for topic:persistent://t/n/x"),
        (500, "Failed due to pulsar service is not ready"),
        (500, "Namespace service is not ready for acquiring ownership"),
        (500, "Topic is temporarily unavailable"),
        (500, "Topic policies cache initialization for namespace t/n was aborted because the cached state was cleared"),
        (500, "Attempting to subscribe to a fenced topic"),
        (500, "Topic[persistent://t/n/x] is fenced, can not unload subscription s now"),
        (412, "Failed for Subscription Busy: Failed to fence subscription"),
        (409, "Concurrent modification"),
        (500, "BadVersionException"),
        (
            412,
            "Unable to find position for position specified: unable to persist readPosition for cursor reset 87:-1",
        ),
        (500, "Finding owner for ServiceUnit t/n/0x0_0x4 timed out"),
        (429, "HTTP 429"),
        (503, "HTTP 503"),
        (504, "HTTP 504"),
    ],
)
def test_answers_of_a_broker_in_hand_over_are_transient(status: int, reason: str) -> None:
    assert is_transient(status, reason)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (404, "Topic persistent://t/n/being-unloaded not found"),
        (401, "Unauthorized to unload: not owned"),
        (409, "This topic already exists"),
        (412, "Subscription has active connected consumers"),
        (412, "Topic has 3 clients connected Including 2 consumers, 1 producers, and 0 replicators."),
        (400, "Invalid retention policy"),
        (500, "something nobody has seen"),
        (405, "Topic level policies is disabled"),
    ],
)
def test_answers_that_will_not_change_are_not_repeated(status: int, reason: str) -> None:
    assert not is_transient(status, reason)


def test_a_missing_subscription_is_told_from_a_missing_topic() -> None:
    assert is_subscription_missing("Subscription s not found for topic persistent://t/n/x")
    assert not is_subscription_missing("Topic persistent://t/n/x not found")
    assert not is_subscription_missing("Topic persistent://t/n/subscription not found")


def test_a_denied_call_names_the_right_that_is_missing() -> None:
    denied = error_for(
        "terminate x", 401, "Unauthorized to validateTopicOperation [TERMINATE]", About.TOPIC, right="tenant admin"
    )
    assert "the connection's role needs: tenant admin" in str(denied)
    refused = error_for("terminate x", 401, "Authentication required", About.TOPIC, right="tenant admin")
    assert "does not accept the connection's credentials" in str(refused)
    assert "tenant admin" not in str(refused)


@pytest.mark.parametrize(
    "reason",
    [
        "Unauthorized to validateTopicOperation for operation [TERMINATE] on topic [persistent://t/n/x]",
        "Don't have permission to administrate resources on this tenant",
        "This operation requires super-user access",
    ],
)
def test_lacking_a_right_is_told_from_unknown_credentials(reason: str) -> None:
    assert is_authorization_refusal(reason)
    assert not is_authorization_refusal("Authentication required")


def test_r14_a_log_that_its_broker_uses_no_more_is_told_from_one_that_comes_back() -> None:
    error = error_for("terminate x", 500, "java.lang.Exception: Attempted to use a fenced managed ledger", About.TOPIC)
    assert isinstance(error, LogFenced)
    assert not is_transient(500, "Attempted to use a fenced managed ledger"), "asking again does not help"
