"""Hazard C63, R34: who may see the credentials after a redirect."""

import pytest

from scalable_topics_operator.backends.admin.origins import Origin, Trust, parse_trusted_broker


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://Broker-0.Pulsar.SVC:8080/admin", Origin("http", "broker-0.pulsar.svc", 8080)),
        ("http://broker/admin/v2", Origin("http", "broker", 80)),
        ("https://broker./x?y=z", Origin("https", "broker", 443)),
        ("HTTPS://broker:8443", Origin("https", "broker", 8443)),
        ("http://[::1]:8080/x", Origin("http", "::1", 8080)),
        ("http://127.0.0.1:8080#f", Origin("http", "127.0.0.1", 8080)),
    ],
)
def test_origins_are_compared_in_one_spelling(url: str, origin: Origin) -> None:
    assert Origin.parse(url) == origin


@pytest.mark.parametrize(
    "url",
    [
        "ftp://broker/",
        "//broker/x",
        "/x",
        "",
        "http://",
        "http://:8080/",
        "http://user@broker/",
        "http://broker:8080@evil:8080/",
        "http://@broker/",
        "http://broker\\@evil/",
        "http://broker\\.evil/",
        "http://bro\tker/",
        "http://broker /",
        "http://broker:99999/",
        "http://broker:abc/",
        "http://broker:0/",
        "http://broker/\u202e",
    ],
)
def test_urls_that_could_be_read_in_two_ways_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="URL") as refused:
        Origin.parse(url)
    assert "evil" not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["", "http://b:1", "a/b", "u@h:1", "h:port", "*", "*.", "a.*.b", "h:1/x", "*.:80", "ä:1"]
)
def test_a_trusted_broker_that_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a host"):
        parse_trusted_broker(text)


def _trust(admin: str = "http://admin:8080", trusted: tuple[str, ...] = (), listed: tuple[str, ...] = ()) -> Trust:
    return Trust(Origin.parse(admin), tuple(parse_trusted_broker(text) for text in trusted)).with_listed(listed)


@pytest.mark.parametrize(
    ("trust", "target", "allowed"),
    [
        (_trust(), "http://admin:8080", True),
        (_trust(), "http://ADMIN:8080/x", True),
        (_trust(), "http://admin:8081", False),
        (_trust(), "http://broker:8080", False),
        (_trust(listed=("broker:8080",)), "http://broker:8080", True),
        (_trust(listed=("Broker:8080",)), "http://bROKER:8080", True),
        # Another port of the same machine may be anybody's (hazard C63).
        (_trust(listed=("127.0.0.1:8080",)), "http://127.0.0.1:9999", False),
        # Over verified TLS a listed host proves itself on any port: brokers list the plain one.
        (_trust(listed=("broker:8080",)), "https://broker:8443", True),
        (_trust("https://admin:8443"), "https://admin:9443", True),
        (_trust(listed=("broker:8080",)), "https://broker.evil:8443", False),
        (_trust(trusted=("broker",)), "http://broker:1234", True),
        (_trust(trusted=("broker:80",)), "http://broker", True),
        (_trust(trusted=("broker:443",)), "https://broker", True),
        (_trust(trusted=("broker:80",)), "http://broker:8080", False),
        (_trust(trusted=("*.pulsar.svc:8080",)), "http://b-0.pulsar.svc:8080", True),
        (_trust(trusted=("*.pulsar.svc",)), "http://b-0.x.pulsar.svc:1", True),
        (_trust(trusted=("*.pulsar.svc",)), "http://pulsar.svc:1", False),
        (_trust(trusted=("*.pulsar.svc",)), "http://evilpulsar.svc:1", False),
        (_trust(trusted=("*.pulsar.svc",)), "http://pulsar.svc.evil:1", False),
        (_trust(trusted=("[::1]:8080",)), "http://[::1]:8080", True),
        # A list cannot widen itself: neither wildcards nor entries without port count.
        (_trust(listed=("*.evil:8080", "evil", "http://evil:8080", "")), "http://x.evil:8080", False),
        (_trust(listed=("evil",)), "http://evil:8080", False),
    ],
)
def test_c63_only_named_servers_may_see_the_credentials(trust: Trust, target: str, allowed: bool) -> None:
    assert trust.allows(Origin.parse(target)) is allowed


def test_without_host_name_checks_tls_proves_nothing_about_another_port() -> None:
    trust = _trust(listed=("broker:8080",))
    assert not trust.allows(Origin.parse("https://broker:8443"), verified_tls=False)
    assert _trust(listed=("broker:8443",)).allows(Origin.parse("https://broker:8443"), verified_tls=False)


def test_a_new_list_replaces_the_old_one() -> None:
    trust = _trust(listed=("gone:8080",)).with_listed(["new:8080"])
    assert trust.allows(Origin.parse("http://new:8080"))
    assert not trust.allows(Origin.parse("http://gone:8080"))


@pytest.mark.parametrize(
    ("source", "target", "weaker"),
    [
        ("https://a", "http://a", True),
        ("https://a", "https://b", False),
        ("http://a", "https://b", False),
        ("http://a", "http://b", False),
    ],
)
def test_r34_giving_up_encryption_is_noticed(source: str, target: str, weaker: bool) -> None:
    assert _trust().weakens(Origin.parse(source), Origin.parse(target)) is weaker


def test_an_origin_reads_back_as_it_is_shown() -> None:
    for url in ("http://broker:8080", "https://[::1]:8443"):
        assert str(Origin.parse(url)) == url
