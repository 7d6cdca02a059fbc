"""`python -m segment_load stream`: the pipeline, until it is told to end."""

from __future__ import annotations

import argparse
import logging
import sys
import threading
import time

from pyspark.sql import SparkSession

from scalable_topics_operator.load.back_off import BackOff
from scalable_topics_operator.load.pipeline_job import ACCEPT_ANY_HOSTNAME
from segment_load.broker_access import BrokerAccess, BrokerSilent
from segment_load.ending import told_to_end
from segment_load.record_sink import RecordTopic
from segment_load.session import make_session
from segment_load.stream import LoadStream, StreamSettings

logger = logging.getLogger(__name__)


def add_parser(jobs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to those of the program."""
    parser = jobs.add_parser("stream", help="ask brokers for their load for ever and write what is news")
    for name, text in (
        ("--admin-url", "address of a broker's admin API, or of a service in front of all"),
        ("--service-url", "address for clients, pulsar:// or pulsar+ssl://"),
        ("--records-topic", "where records go: persistent://TENANT/NAMESPACE/TOPIC"),
        ("--folder", "checkpoint and state: a local path or one of any Hadoop file system"),
    ):
        parser.add_argument(name, required=True, help=text)
    for name, text in (
        ("--token-file", "file with a superuser's token"),
        ("--ca-file", "certificates that brokers are checked against"),
        ("--certificate-file", "client certificate, PEM"),
        ("--key-file", "its private key, PEM; left out where the certificate's file holds it, too"),
        ("--thresholds-file", "thresholds of topics, as the operator publishes them"),
        ("--history-path", "where samples are kept for reports: a local path or one of any Hadoop file system"),
        ("--master", "Spark master, such as local[2]; what spark-submit says if left out"),
    ):
        parser.add_argument(name, default="", help=text)
    parser.add_argument("--interval-seconds", type=_positive, default=10.0, help="time between two batches (10)")
    parser.add_argument("--timeout-seconds", type=_positive, default=5.0, help="bound of one call to a broker (5)")
    parser.add_argument(
        "--history-retention-days", type=_days, default=30, help="whole days after which samples go (30)"
    )
    parser.add_argument(
        ACCEPT_ANY_HOSTNAME, action="store_true", help="take a broker's certificate whatever host it names"
    )
    parser.add_argument("--end-with-stdin", action="store_true", help="end when standard input is closed")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the stream until it is told to end; answers the exit code."""
    try:
        access = BrokerAccess(
            options.admin_url,
            options.token_file,
            options.ca_file,
            options.certificate_file,
            options.key_file,
            options.timeout_seconds,
            not options.accept_any_hostname,
        )
    except ValueError as error:
        print(f"segment_load: {error}", file=sys.stderr)
        return 2
    topic = RecordTopic(
        options.records_topic,
        options.service_url,
        options.token_file,
        options.ca_file,
        options.certificate_file,
        options.key_file,
        not options.accept_any_hostname,
    )
    settings = StreamSettings(
        access,
        topic,
        options.folder,
        options.thresholds_file,
        options.interval_seconds,
        options.history_path,
        options.history_retention_days,
    )
    return _stream(options.master, settings, told_to_end(with_stdin=options.end_with_stdin))


def _stream(master: str, settings: StreamSettings, told_to_stop: threading.Event) -> int:
    spark = make_session(master)
    pause_seconds, has_begun, back_off = 0.0, False, BackOff()
    try:
        while not told_to_stop.wait(pause_seconds):
            began = time.monotonic()
            try:
                why = _run(spark, settings, told_to_stop)
                has_begun = True
            except BrokerSilent as silent:
                if not has_begun:
                    print(f"segment_load: {silent}", file=sys.stderr)
                    return 1
                why = str(silent)
            if told_to_stop.is_set():
                return 0
            # The next goes on from the checkpoint; what fails at once is tried again later and later.
            pause_seconds = back_off.after(time.monotonic() - began)
            logger.error("the stream has ended, and begins again in %.0f s: %s", pause_seconds, why)
        return 0
    finally:
        spark.stop()


def _run(spark: SparkSession, settings: StreamSettings, told_to_stop: threading.Event) -> str:
    """Run one query until it ends or is told to; answers why it ended. Raises BrokerSilent when it cannot begin."""
    stream = LoadStream(spark, settings)
    try:
        query = stream.start()
        while query.isActive and not told_to_stop.wait(0.5):
            pass
        query.stop()
        return str(query.exception())
    finally:
        stream.close()


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError("must be greater than 0")
    return value


def _days(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value
