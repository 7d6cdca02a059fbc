"""What is shown of topics that need a look: how they stand, what their journal holds, segments that are not right."""

from __future__ import annotations

from typing import Any

from prometheus_client import generate_latest

from scalable_topics_operator.cluster.object_key import key_of
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.conditions import Standing, apply_standing
from scalable_topics_operator.controllers.topic_glimpses import TopicGlimpses, glimpse_of
from scalable_topics_operator.telemetry.fleet_metrics import TopicGlimpse, TopicStanding
from scalable_topics_operator.telemetry.metrics import Metrics
from scalable_topics_operator.telemetry.pipeline_metrics import BROKERS, PIPELINE

TOPIC, PULSAR = "topic://t/n/x", "shop/pulsar"
OF_TOPIC = {"topic": TOPIC, "connection": PULSAR}
CONNECTION = ("shop", "pulsar")
OF_CONNECTION = {"namespace": "shop", "name": "pulsar"}
NOW = "2026-01-02T03:04:05Z"


def _object(standing: Standing, **status: Any) -> dict[str, Any]:
    return {"status": {"conditions": apply_standing((), standing, generation=1, now=NOW), **status}}


def test_how_a_topic_stands_is_one_word() -> None:
    assert glimpse_of({}, TOPIC, PULSAR) == TopicGlimpse(TOPIC, PULSAR, TopicStanding.NEW)
    for standing, word in (
        (Standing.healthy(), TopicStanding.READY),
        (Standing.working("Splitting", ""), TopicStanding.RECONCILING),
        (Standing.working("BrokerUnavailable", "", ready=True), TopicStanding.RECONCILING),
        (Standing.stuck("CursorLost", ""), TopicStanding.STALLED),
    ):
        assert glimpse_of(_object(standing), TOPIC, PULSAR) == TopicGlimpse(TOPIC, PULSAR, word, standing.reason)


def test_the_open_journal_is_shown_with_the_time_of_its_beginning() -> None:
    body = _object(Standing.healthy(), operation={"kind": "Split", "startedAt": "2026-01-02T03:04:05Z"})
    glimpse = glimpse_of(body, TOPIC, PULSAR)
    assert (glimpse.operation, glimpse.started_seconds) == ("Split", 1767323045.0)
    broken = glimpse_of(_object(Standing.healthy(), operation={"kind": "Split", "startedAt": "soon"}), TOPIC, PULSAR)
    assert (broken.operation, broken.started_seconds) == ("Split", 0.0)


def test_the_topics_that_a_replica_leads_are_shown_and_named_if_a_journal_is_open() -> None:
    led = []
    for name, journal in {"idle": None, "splitting": {"kind": "Split", "startedAt": NOW}}.items():
        metadata = {"namespace": "shop", "name": name, "uid": name, "resourceVersion": "1"}
        spec = {"topic": f"t/n/{name}", "connectionRef": {"name": "pulsar"}}
        body = {"metadata": metadata, "spec": spec, **_object(Standing.healthy(), operation=journal)}
        led.append((key_of(TOPICS, body), body))
    idle, splitting = TopicGlimpses(lambda: led)()
    assert idle == TopicGlimpse("", "", TopicStanding.READY, "Reconciled")
    assert splitting == TopicGlimpse(
        "topic://t/n/splitting", "shop/pulsar", TopicStanding.READY, "Reconciled", "Split", 1767323045.0
    )


def test_a_fleet_is_counted_anew_at_every_scrape() -> None:
    """With the names of topics whose journal is open even where names are switched off: it is a few at a time."""
    metrics = Metrics(per_topic=False)
    led = [
        TopicGlimpse(TOPIC, PULSAR, TopicStanding.RECONCILING, "Splitting", "Split", 17.0),
        TopicGlimpse("topic://t/n/y", PULSAR, TopicStanding.STALLED, "CursorLost"),
    ]
    value = metrics.registry.get_sample_value
    assert value("scalable_topics_topics", {"state": "Ready"}) == 0
    metrics.fleet.follow(lambda: led)
    assert value("scalable_topics_topics", {"state": "Reconciling"}) == 1
    assert value("scalable_topics_stalled_topics", {"reason": "CursorLost"}) == 1
    started = {**OF_TOPIC, "kind": "Split"}
    assert value("scalable_topics_operation_start_timestamp_seconds", started) == 17
    led[:] = [TopicGlimpse(TOPIC, PULSAR, TopicStanding.READY, "Reconciled")]
    assert value("scalable_topics_topics", {"state": "Reconciling"}) == 0
    assert value("scalable_topics_stalled_topics", {"reason": "CursorLost"}) is None
    assert value("scalable_topics_operation_start_timestamp_seconds", started) is None


def test_undrained_segments_are_shown_until_they_are_drained() -> None:
    metrics = Metrics()
    value, labels = metrics.registry.get_sample_value, OF_TOPIC
    since = "scalable_topics_undrained_segment_sealed_timestamp_seconds"
    metrics.segments.show_undrained(TOPIC, PULSAR, [9_000, 4_000, 0])
    assert (value("scalable_topics_undrained_segments", labels), value(since, labels)) == (3, 4)
    metrics.segments.show_undrained(TOPIC, PULSAR, [0])
    assert (value("scalable_topics_undrained_segments", labels), value(since, labels)) == (1, None)
    metrics.segments.show_undrained(TOPIC, PULSAR, [])
    assert (value("scalable_topics_undrained_segments", labels), value(since, labels)) == (0, None)


def test_topics_of_one_name_on_two_clusters_have_series_of_their_own() -> None:
    metrics = Metrics()
    value, other = metrics.registry.get_sample_value, {"topic": TOPIC, "connection": "shop/other"}
    metrics.fleet.follow(
        lambda: [
            TopicGlimpse(TOPIC, connection, TopicStanding.RECONCILING, "Splitting", "Split", started_seconds)
            for connection, started_seconds in ((PULSAR, 17.0), ("shop/other", 19.0))
        ]
    )
    started = "scalable_topics_operation_start_timestamp_seconds"
    assert [value(started, {**labels, "kind": "Split"}) for labels in (OF_TOPIC, other)] == [17, 19]
    metrics.segments.show_undrained(TOPIC, PULSAR, [1])
    metrics.segments.show_undrained(TOPIC, "shop/other", [])
    undrained = "scalable_topics_undrained_segments"
    assert [value(undrained, labels) for labels in (OF_TOPIC, other)] == [1, 0]
    metrics.segments.forget(TOPIC, "shop/other")
    assert [value(undrained, labels) for labels in (OF_TOPIC, other)] == [1, None]


def test_a_topic_that_is_forgotten_leaves_no_series() -> None:
    metrics = Metrics()
    metrics.segments.show_undrained(TOPIC, PULSAR, [1])
    metrics.segments.show_terminated(TOPIC, PULSAR, 2, replaced=1)
    assert metrics.registry.get_sample_value("scalable_topics_terminated_active_segments", OF_TOPIC) == 2
    assert metrics.registry.get_sample_value("scalable_topics_segments_replaced_total", OF_TOPIC) == 1
    metrics.segments.forget(TOPIC, PULSAR)
    assert TOPIC not in generate_latest(metrics.registry).decode()


def test_without_names_of_topics_there_are_no_segments_either() -> None:
    metrics = Metrics(per_topic=False)
    metrics.segments.show_undrained(TOPIC, PULSAR, [1])
    metrics.segments.show_terminated(TOPIC, PULSAR, 2, replaced=1)
    assert TOPIC not in generate_latest(metrics.registry).decode()


def test_the_load_of_a_connection_goes_with_its_leader() -> None:
    metrics = Metrics()
    value = metrics.registry.get_sample_value
    metrics.pipelines.show_followed(CONNECTION, followed=False)
    metrics.pipelines.show_age(CONNECTION, 0.0)
    metrics.pipelines.sampled(CONNECTION, BROKERS, segments=7, unsettled=1, missing=2)
    assert value("scalable_topics_load_samples_total", {**OF_CONNECTION, "source": BROKERS}) == 1
    assert value("scalable_topics_load_samples_total", {**OF_CONNECTION, "source": PIPELINE}) == 0
    assert value("scalable_topics_load_segments", OF_CONNECTION) == 7
    assert value("scalable_topics_load_unsettled_segments", OF_CONNECTION) == 1
    assert value("scalable_topics_load_brokers_missing", OF_CONNECTION) == 2
    metrics.pipelines.hide_load(CONNECTION)
    assert "shop" not in generate_latest(metrics.registry).decode()


def test_a_pipeline_is_up_or_not_as_long_as_there_is_one() -> None:
    metrics = Metrics()
    value = metrics.registry.get_sample_value
    metrics.pipelines.show_pipeline(CONNECTION, is_up=False, batch_seconds=None)
    assert value("scalable_topics_pipeline_up", OF_CONNECTION) == 0
    assert value("scalable_topics_pipeline_batch_seconds", OF_CONNECTION) is None
    metrics.pipelines.show_pipeline(CONNECTION, is_up=True, batch_seconds=0.25)
    assert value("scalable_topics_pipeline_up", OF_CONNECTION) == 1
    assert value("scalable_topics_pipeline_batch_seconds", OF_CONNECTION) == 0.25
    metrics.pipelines.hide_pipeline(CONNECTION)
    assert "shop" not in generate_latest(metrics.registry).decode()
