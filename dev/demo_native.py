"""The demonstration on Pulsar 5: brokers split and merge by themselves or when an object asks, and keep the layout."""

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import yaml
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from dev.demo_native_traffic import STREAM_SUBSCRIPTION, NativeTraffic
from dev.demo_stage import EXAMPLES, SUBSCRIPTION, TOPIC, Stage, documents, operators
from dev.errors import DevError
from scalable_topics.layout import SegmentLayout, from_pip468

_PATH = f"scalable/public/default/{TOPIC}"
_POLICY: Mapping[str, Any] = {
    "apiVersion": "scalabletopics.io/v1alpha1",
    "kind": "SegmentAutoScalePolicy",
    "metadata": {"name": "few-and-busy"},
    "spec": {
        "target": {"scope": "Topic", "topicRef": {"name": TOPIC}},
        "maxSegments": 16,
        "split": {"msgRateIn": "20k", "cooldown": "90s"},
    },
}
_STORED = {"maxSegments": 16, "splitMsgRateInThreshold": 20000.0, "splitCooldownSeconds": 90}
_SHOWN = (*_STORED, "minSegments", "mergeWindowSeconds")


class NativeDemo(Stage):
    """The story."""

    def run(self, logs: Path, replicas: int) -> None:
        """Apply the quick start, have the brokers reshape the topic, and show what became of it."""
        self.install()
        # Brokers may change a topic by themselves; what they do is looked for often enough to be seen here.
        flags = ("--auto-scale-enabled=true", "--observe-seconds=2")
        with operators(self.kubectl.kubeconfig, logs, replicas, *flags) as running:
            self.begin()
            self._compare()
            self.console.rule("the brokers split and merge for objects while Pulsar's V5 client writes and reads")
            split, into_four, merge = documents(EXAMPLES / "operations.yaml")
            with NativeTraffic(self.pulsar, TOPIC, SUBSCRIPTION, logs / "v5-client") as traffic:
                self.settle(traffic)
                self.succeed(split, traffic)
                self.settle(traffic)
                if self.operate(into_four)["phase"] != "Failed":
                    raise DevError("a split in four is said to be done, which brokers of Pulsar 5 cannot do")
                self.settle(traffic)
                if replicas > 1:
                    self.leader(running).kill()
                    self.console.print(f"the replica that leads {TOPIC} was killed right before the next change")
                self.succeed(merge, traffic)
                self.settle(traffic)
            self._judge(traffic)
            self.show_history()
            self._compare()
            self._follow_policy()
            self._clean_up()

    def _judge(self, traffic: NativeTraffic) -> None:
        """What became of the application's messages; raises DevError if one is lost or out of order."""
        lost, disordered, stalls = traffic.lost(), traffic.disordered(), traffic.stalls_ms()
        self.console.print(
            f"sent {traffic.stored}, received {traffic.received} by the stream consumer ({STREAM_SUBSCRIPTION}) and as "
            f"many by the queue consumer ({SUBSCRIPTION}); lost {lost}, disorder {disordered}, came again "
            f"{traffic.repeated()}\n"
            f"a message took {traffic.ordinary_ms():.0f} ms (p50) to be stored; the longest during a change: "
            f"p50 {median(stalls):.0f} ms, max {max(stalls):.0f} ms"
        )
        if lost or disordered:
            raise DevError("messages were mistreated")

    def _compare(self) -> None:
        """The object's layout beside the brokers' own; raises DevError where they differ."""
        self.console.rule("what the object says, and what the brokers' own record says")
        self.wait("the object tells of the brokers' layout", lambda: self.layout().epoch == self._theirs().epoch)
        ours, theirs = self.layout(), self._theirs()
        stats = self.ask(f"{_PATH}/stats")["layout"]["segments"]
        table = Table("segment", "range", "object says", "brokers say", "topic on the brokers", box=None)
        differ = []
        for segment_id in sorted(ours.segments.keys() | theirs.segments.keys()):
            mine, other = ours.segments.get(segment_id), theirs.segments.get(segment_id)
            if mine is None or other is None or (mine.hash_range, mine.state) != (other.hash_range, other.state):
                differ.append(segment_id)
            one = mine or other
            assert one is not None
            table.add_row(
                str(segment_id),
                escape(str(one.hash_range)),
                mine.state.value if mine else "-",
                other.state.value if other else "-",
                str(stats.get(str(segment_id), {}).get("name", "-")),
            )
        self.console.print(table)
        if differ:
            raise DevError(f"object and brokers differ in segments {differ}")
        self.console.print(f"{len(ours.segments)} segments at epoch {ours.epoch}: object and brokers agree")

    def _follow_policy(self) -> None:
        """A policy becomes what brokers go by, for this topic alone."""
        self.console.rule("a SegmentAutoScalePolicy becomes the brokers' own")
        self.kubectl("apply", "-f", "-", manifest=yaml.safe_dump(dict(_POLICY)))
        self.wait("the brokers have stored the policy", lambda: self.ask(_PATH).get("autoScalePolicy") == _STORED)
        in_force = self.ask(f"{_PATH}/stats")["autoScale"]["policy"]
        self.console.print(Text(f"kubectl apply: {json.dumps(_POLICY['spec'])}"))
        table = Table("brokers' name of it", "stored with the topic", "in force", box=None)
        for name in _SHOWN:
            table.add_row(name, str(_STORED.get(name, "-")), str(in_force[name]))
        self.console.print(table)
        self.wait("AutoScale tells who decides", lambda: self.condition("AutoScale").get("reason") == "Brokers")
        self.console.print(Text(f"condition AutoScale: {self.condition('AutoScale')['message']}"))
        if any(in_force[name] != value for name, value in _STORED.items()):
            raise DevError(f"the brokers go by something else: {in_force}")

    def _clean_up(self) -> None:
        """The object goes, and the topic with it."""
        self.console.rule("the object is deleted, and the topic with it")
        self.kubectl("patch", "scalabletopic", TOPIC, "--type=merge", "-p", '{"spec": {"deletionPolicy": "Delete"}}')
        self.console.print(self.kubectl("delete", "scalabletopic", TOPIC).rstrip())
        left = self.ask("scalable/public/default")
        self.console.print(f"scalable topics that the brokers have now: {len(left)}")
        if left:
            raise DevError(f"the brokers still have {left}")

    def _theirs(self) -> SegmentLayout:
        return from_pip468(self.ask(_PATH))
