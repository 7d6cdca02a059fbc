"""What one topic and one segment cost an operator process, measured with its own code and objects it made."""

from __future__ import annotations

import gc
import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

import pyarrow
import pyarrow.parquet

from scalable_topics_operator.autoscale.load import Rates
from scalable_topics_operator.cluster.kube_client import LIST_CHUNK, Body
from scalable_topics_operator.cluster.object_key import key_of
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.load.sample import LoadSample, SegmentSample
from scalable_topics_operator.operator_process import OperatorProcess
from scalable_topics_operator.settings import OperatorSettings
from segment_load.change_filter import RATES

_SEGMENTS_OF_A_SAMPLE = 20_000
# Of the history: one batch of many segments, and an hour of batches of few.
_BATCH = (10_000, 1)
_HOUR = (200, 360)


@dataclass(frozen=True, slots=True)
class TopicCosts:
    """What a topic costs.

    Args:
        cached_bytes: resident memory of one that a replica knows, whoever leads it.
        list_seconds: processor time of one in a list that has not changed, from the text on.
        learn_seconds: the same of one that is news.
    """

    cached_bytes: float
    list_seconds: float
    learn_seconds: float


@dataclass(frozen=True, slots=True)
class SampleCosts:
    """What a segment costs in a load sample.

    Args:
        sample_bytes: resident memory of a segment in a load sample.
        sample_json_bytes: of a segment in the sample that replicas send each other.
        encode_seconds: processor time of a segment for the replica that sends it.
        decode_seconds: for one that reads it.
    """

    sample_bytes: float
    sample_json_bytes: float
    encode_seconds: float
    decode_seconds: float


def measure_topics(body: Body, topics: int) -> TopicCosts:
    """Measure with copies of an object, in a process of its own.

    Args:
        body: a ScalableTopic.
        topics: how many copies, more than a page of a list has.
    """
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured_topics, (body, topics))


def measure_sample() -> SampleCosts:
    """Measure with a sample of many segments, in a process of its own: what another has let go would hide its size."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured_sample)


@dataclass(frozen=True, slots=True)
class HistoryCosts:
    """Bytes of one sample of one segment in Parquet, in the columns of `segment_load`.

    Args:
        raw_bytes: in the file of a batch.
        hour_bytes: in the files of an hour, by topic.
    """

    raw_bytes: float
    hour_bytes: float


def measure_history(folder: Path) -> HistoryCosts:
    """Write samples whose rates differ in every digit; nothing else is harder to compress.

    Args:
        folder: for the files.
    """
    return HistoryCosts(*(_bytes_of_a_sample(folder / name, *size) for name, size in (("raw", _BATCH), ("h", _HOUR))))


def _bytes_of_a_sample(path: Path, segments: int, batches: int) -> float:
    chances = random.Random(7)
    rows = [
        {
            "at": datetime.fromtimestamp(1_800_000_000 + 10 * batch, UTC),
            "topic": f"topic://public/default/topic-{number // 10:07}",
            "segment": f"persistent://public/default/topic-{number // 10:07}-segment-{number % 10:04x}-ffff-{number}",
            "broker": f"broker-{chances.randrange(50)}.pulsar.svc:8080",
            "counts": True,
            **{rate: chances.uniform(0.0, 1e6) for rate in RATES},
            "backlog": [("subscription-0", chances.randrange(10**6)), ("subscription-1", 0)],
        }
        for number in range(segments)
        for batch in range(batches)
    ]
    types = {"at": pyarrow.timestamp("us", "UTC"), "topic": pyarrow.string(), "segment": pyarrow.string()}
    types |= {"broker": pyarrow.string(), "counts": pyarrow.bool_(), **dict.fromkeys(RATES, pyarrow.float64())}
    types |= {"backlog": pyarrow.map_(pyarrow.string(), pyarrow.int64())}
    columns = pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(types))
    pyarrow.parquet.write_table(columns, path, compression="snappy")
    return path.stat().st_size / len(rows)


def _measured_topics(body: Body, topics: int) -> TopicCosts:
    pages = [
        json.dumps([_copy(body, number) for number in range(begin, min(topics, begin + LIST_CHUNK))])
        for begin in range(0, topics, LIST_CHUNK)
    ]
    process = OperatorProcess(OperatorSettings())
    # What reading a page takes for a moment is taken once, and not for each topic.
    _list(process, pages[:1])
    before, news = _resident(), topics - LIST_CHUNK
    learned = _timed(lambda: _list(process, pages[1:])) / news
    cached = (_resident() - before) / news
    listed = _timed(lambda: _list(process, pages)) / topics
    return TopicCosts(cached, listed, learned)


def _measured_sample() -> SampleCosts:
    before = _resident()
    sample, now_ms, segments = _sample(), time.time_ns() // 1_000_000, _SEGMENTS_OF_A_SAMPLE
    held = (_resident() - before) / segments
    texts: list[str] = []
    encoded = _timed(lambda: texts.append(json.dumps(sample.to_json(now_ms), separators=(",", ":"))))
    decoded = _timed(lambda: LoadSample.from_json(json.loads(texts[0]), now_ms))
    return SampleCosts(held, len(texts[0]) / segments, encoded / segments, decoded / segments)


def _copy(body: Body, number: int) -> Body:
    name = f"{body['metadata']['name']}-{number:07}"
    metadata = {**body["metadata"], "name": name, "uid": f"uid-{number}", "resourceVersion": "5"}
    spec = {**body["spec"], "topic": f"public/default/{name}"}
    return {"metadata": metadata, "spec": spec, "status": {**body["status"], "topic": f"topic://public/default/{name}"}}


def _list(process: OperatorProcess, pages: list[str]) -> None:
    """What `Relister` does with pages, and the process with what is news."""
    for page in pages:
        for item in json.loads(page):
            body = {"apiVersion": TOPICS.api_version, "kind": TOPICS.kind, **item}
            if process._cache.observe(TOPICS, body):
                process._on_change(key_of(TOPICS, body))


def _sample() -> LoadSample:
    rates, backlogs = (1234.5678, 123456.789, 1234.5678, 123456.789), {"subscription-0": 12, "subscription-1": 0}
    names = (
        f"persistent://public/default/topic-{number // 10:07}-segment-{number % 10:04x}-ffff-{number % 10}"
        for number in range(_SEGMENTS_OF_A_SAMPLE)
    )
    return LoadSample(0, 60.0, {name: SegmentSample(Rates(*rates), dict(backlogs)) for name in names})


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _resident() -> float:
    gc.collect()
    return float(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
