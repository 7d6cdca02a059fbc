"""The ordinary demonstration: on Pulsar 4 the operator itself splits and merges, and its leader dies in the middle."""

import time
from pathlib import Path
from statistics import median

from rich.markup import escape
from rich.table import Table

from dev.demo_stage import CONNECTION, EXAMPLES, SUBSCRIPTION, TOPIC, Stage, documents, operators
from dev.demo_traffic import ClassicTraffic
from dev.errors import DevError
from scalable_topics.layout import TopicName, classic_segment_name
from tests.support.running_operator import RunningOperator
from tests.support.stored_messages import judge, read_topics

_PIPELINE_WAIT_SECONDS = 240.0
_KILL_AFTER_SECONDS = 0.2


class ClassicDemo(Stage):
    """The story."""

    def run(self, logs: Path, replicas: int) -> None:
        """Apply the quick start, reshape the topic, and show what became of it."""
        self.install()
        with operators(self.kubectl.kubeconfig, logs, replicas) as running:
            self.begin(load={"source": "Pipeline", "intervalSeconds": 5})
            self._follow_pipeline()
            self.console.rule("the topic is split and merged while an application uses it")
            with ClassicTraffic(self.pulsar, TOPIC, SUBSCRIPTION) as traffic:
                *first, last = documents(EXAMPLES / "operations.yaml")
                for manifest in first:
                    self.settle(traffic)
                    self.succeed(manifest, traffic)
                self.settle(traffic)
                if replicas > 1:
                    leader = self.leader(running)
                    self.succeed(last, traffic, lambda: self._strike(leader))
                else:
                    self.succeed(last, traffic)
                self.settle(traffic)
            self._judge(traffic)
            self.show_history()
            self._compare()

    def _follow_pipeline(self) -> None:
        """Wait for the load pipeline, which the leader of the connection has started on Spark beside itself."""
        self.console.rule("the load pipeline on Spark starts beside the operator")
        started = time.monotonic()
        resource = "scalabletopicconnection"
        self.wait(
            "records are followed",
            lambda: self.condition("LoadFresh", resource, CONNECTION).get("reason") == "PipelineFollowed",
            _PIPELINE_WAIT_SECONDS,
        )
        self.console.print(f"the operator follows its records after {time.monotonic() - started:.0f} s")

    def _strike(self, leader: RunningOperator) -> None:
        """Kill the leader in the middle of an operation."""
        time.sleep(_KILL_AFTER_SECONDS)
        leader.kill()
        self.console.print(f"the replica that leads {TOPIC} was killed {_KILL_AFTER_SECONDS} s after that")

    def _judge(self, traffic: ClassicTraffic) -> None:
        """What became of the application's messages; raises DevError if one is lost, double or out of order."""
        layout, name = self.layout(), TopicName.parse(f"public/default/{TOPIC}")
        topics = [
            classic_segment_name(name, segment.hash_range, segment.segment_id)
            for _, segment in sorted(layout.segments.items())
        ]
        journal = traffic.journal
        findings = judge(
            journal.acknowledged, read_topics(self.pulsar.service_url, self.pulsar.superuser_token, topics)
        )
        lost = len(findings.lost) + len(journal.not_received) + len(journal.failed)
        duplicated = len(findings.duplicated) + sum(times > 1 for times in journal.received.values())
        stalls = traffic.stalls_ms()
        self.console.print(
            f"sent {traffic.stored}, received {len(journal.received)}, lost {lost}, duplicated {duplicated}, "
            f"disorder {len(findings.disordered)}\n"
            f"a message took {traffic.ordinary_ms():.0f} ms (p50) to be stored; the longest during a change: "
            f"p50 {median(stalls):.0f} ms, max {max(stalls):.0f} ms"
        )
        if lost or duplicated or findings:
            raise DevError(f"messages were mistreated: {findings}")

    def _compare(self) -> None:
        """What the record says beside what the broker has; raises DevError where they differ."""
        self.console.rule("what the status says, and what the broker really has")
        table = Table("segment", "range", "status says", "broker says", "cursors on the broker", box=None)
        name = TopicName.parse(f"public/default/{TOPIC}")
        layout = self.layout()
        differ = []
        for segment in layout.segments.values():
            topic = classic_segment_name(name, segment.hash_range, segment.segment_id)
            broker = self.ask(f"{topic.replace('://', '/')}/internalStats")
            state = "sealed" if broker["state"] == "Terminated" else "open"
            wanted = "open" if segment.is_active else "sealed"
            if state != wanted or sorted(broker["cursors"]) != ["audit", "billing"]:
                differ.append(topic)
            table.add_row(
                str(segment.segment_id),
                escape(str(segment.hash_range)),
                segment.state.value,
                f"{state} at {broker['lastConfirmedEntry']}",
                ", ".join(sorted(broker["cursors"])),
            )
        self.console.print(table)
        if differ:
            raise DevError(f"record and broker differ in {', '.join(differ)}")
        self.console.print(f"{len(layout.segments)} segments: record and broker agree")
