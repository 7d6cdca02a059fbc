"""Leases as they are written and read."""

from __future__ import annotations

import pytest

from scalable_topics_operator.cluster.lease_record import (
    GATEWAY_ANNOTATION,
    PART_LABEL,
    REPLICA,
    SHARD,
    TERM_ANNOTATION,
    LeaseRecord,
    replica_lease_name,
    shard_lease_name,
)


def test_a_lease_is_read_as_it_was_written() -> None:
    lease = LeaseRecord(shard_lease_name(3), SHARD, "me", 7, 15.0, "12", 4)
    body = lease.body("ns", acquired=True)
    assert LeaseRecord.parse(body) == lease
    assert lease.shard == 3
    assert body["spec"]["acquireTime"] == body["spec"]["renewTime"]


def test_a_new_lease_has_no_version() -> None:
    body = LeaseRecord(replica_lease_name("me"), REPLICA, "me", 0, 3.0).body("ns", acquired=False)
    assert "resourceVersion" not in body["metadata"]
    assert "acquireTime" not in body["spec"]


@pytest.mark.parametrize("acquired", [True, False])
def test_R6_what_is_written_again_names_the_object_that_was_seen(acquired: bool) -> None:
    lease = LeaseRecord(shard_lease_name(3), SHARD, "me", 7, 15.0, "12", uid="u-1")
    assert lease.body("ns", acquired=acquired)["metadata"]["uid"] == "u-1"


def test_R5_what_people_wrote_into_it_counts_as_nothing() -> None:
    body = LeaseRecord(shard_lease_name(0), SHARD, "me", 7, 15.0, "1").body("ns", acquired=False)
    body["metadata"]["annotations"] = {TERM_ANNOTATION: "seven"}
    body["spec"] = None
    assert LeaseRecord.parse(body) == LeaseRecord(shard_lease_name(0), SHARD, "", 0, 0.0, "1")


def test_other_leases_are_none_of_ours() -> None:
    for name, part in (("other", SHARD), (shard_lease_name(0), "else"), (shard_lease_name(0) + "x", SHARD)):
        body = LeaseRecord(name, part, "me", 1, 15.0, "1").body("ns", acquired=False)
        assert LeaseRecord.parse(body) is None
    body = LeaseRecord(shard_lease_name(0), SHARD, "me", 1, 15.0, "1").body("ns", acquired=False)
    del body["metadata"]["labels"][PART_LABEL]
    assert LeaseRecord.parse(body) is None


@pytest.mark.parametrize("address", ["10.0.0.7:8081", "[fd00::7]:8081", "pod-0.operator.svc:65535", ""])
def test_a_replica_says_where_its_gateway_is(address: str) -> None:
    lease = LeaseRecord(replica_lease_name("me"), REPLICA, "me", 0, 3.0, "5", gateway=address)
    body = lease.body("ns", acquired=False)
    assert LeaseRecord.parse(body) == lease
    assert (GATEWAY_ANNOTATION in body["metadata"]["annotations"]) == bool(address)


@pytest.mark.parametrize(
    "text",
    ["10.0.0.7", "a:b", "host:99999", "user@host:80", "host:80/path", "host:80?x", "http://host:80", "-:1", "h:1\n"],
)
def test_an_address_that_is_none_counts_as_nothing(text: str) -> None:
    """It becomes part of a URL to which callers' tokens are sent."""
    body = LeaseRecord(replica_lease_name("me"), REPLICA, "me", 0, 3.0, "5").body("ns", acquired=False)
    body["metadata"]["annotations"][GATEWAY_ANNOTATION] = text
    found = LeaseRecord.parse(body)
    assert found is not None
    assert found.gateway == ""
