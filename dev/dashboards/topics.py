"""What is seen of all topics, and of one of them."""

from dev.dashboards.panels import Dashboard, Panel, Query, Row, Variable, increase

_TOPICS = (
    ("Topics", "sum(scalable_topics_topics)", "short", None),
    ("Ready", 'sum(scalable_topics_topics{state="Ready"})', "short", None),
    ("Stalled", 'sum(scalable_topics_topics{state="Stalled"})', "short", 1),
    ("Active segments", "sum(max by (topic) (pulsar_scalable_topic_active_segments))", "short", None),
    ("Messages in", "sum(max by (topic) (scalable_topics_msg_rate_in))", "cps", None),
    ("Bytes in", "sum(max by (topic) (scalable_topics_bytes_rate_in))", "Bps", None),
)


def _most(metric: str, labels: str = "topic") -> str:
    return f"topk(10, max by ({labels}) ({metric}))"


FLEET = Dashboard(
    "fleet",
    "fleet",
    (),
    (
        Row(
            "Now",
            [
                Panel(title, unit, [Query(expression, title)], kind="stat", width=4, bad_from=bad_from)
                for title, expression, unit, bad_from in _TOPICS
            ],
        ),
        Row(
            "How topics stand",
            [
                Panel("Topics", "short", [Query("sum by (state) (scalable_topics_topics)", "{{state}}")]),
                Panel(
                    "Stalled topics",
                    "short",
                    [Query("sum by (reason) (scalable_topics_stalled_topics)", "{{reason}}")],
                    "They wait for a person: the reason is that of their condition Stalled.",
                ),
                Panel(
                    "Operations under way",
                    "s",
                    [
                        Query(
                            "time() - min by (kind) (scalable_topics_operation_start_timestamp_seconds)",
                            "oldest {{kind}}",
                        )
                    ],
                    "How long the oldest of each kind has been in the journal of its topic.",
                ),
            ],
        ),
        Row(
            "Changes",
            [
                Panel(
                    "Automatic changes",
                    "short",
                    [
                        Query(f"sum({increase('pulsar_scalable_topic_auto_splits_total')})", "splits"),
                        Query(f"sum({increase('pulsar_scalable_topic_auto_merges_total')})", "merges"),
                        Query(f"sum({increase('pulsar_scalable_topic_auto_rebuckets_total')})", "rebuckets"),
                    ],
                ),
                Panel(
                    "Finished operations",
                    "short",
                    [
                        Query(
                            f"sum by (kind, result) ({increase('scalable_topics_operations_total')}) > 0",
                            "{{kind}} {{result}}",
                        )
                    ],
                    "Automatic ones and those that were asked for.",
                ),
                Panel(
                    "Decisions",
                    "ops",
                    [Query("sum by (code) (rate(scalable_topics_decisions_total[$__rate_interval]))", "{{code}}")],
                    "What decisions on topics found, by the rule that came closest.",
                ),
                Panel(
                    "Splits held back by maxSegments",
                    "short",
                    [
                        Query(
                            f"sum by (topic) ({increase('pulsar_scalable_topic_split_suppressed_max_segments_total')})"
                            " > 0",
                            "{{topic}}",
                        )
                    ],
                    width=12,
                ),
                Panel(
                    "Merges held back by maxDagDepth",
                    "short",
                    [
                        Query(
                            f"sum by (topic) ({increase('pulsar_scalable_topic_merge_suppressed_max_depth_total')})"
                            " > 0",
                            "{{topic}}",
                        )
                    ],
                    width=12,
                ),
            ],
        ),
        Row(
            "The first ten",
            [
                Panel(title, unit, [Query(_most(metric), "{{topic}}")], description, kind="bargauge", width=12)
                for title, unit, metric, description in (
                    ("Messages in", "cps", "scalable_topics_msg_rate_in", ""),
                    ("Active segments", "short", "pulsar_scalable_topic_active_segments", ""),
                    (
                        "Backlog",
                        "short",
                        "scalable_topics_backlog",
                        "Of the subscription that is furthest behind, on active segments.",
                    ),
                )
            ]
            + [
                Panel(
                    "Undrained segments",
                    "short",
                    [
                        Query(
                            _most("scalable_topics_undrained_segments", "topic, connection"),
                            "{{topic}}, {{connection}}",
                        )
                    ],
                    "Sealed segments that a subscription has not read to their end.",
                    kind="bargauge",
                    width=12,
                )
            ],
        ),
    ),
)

_OF = '{topic="$topic"}'


def _one(metric: str) -> str:
    return f"max by (topic) ({metric}{_OF})"


def _by_cluster(metric: str) -> str:
    """Topics of several Pulsar clusters may have one name."""
    return f"max by (topic, connection) ({metric}{_OF})"


def _of_subscription(metric: str) -> str:
    return f"max by (subscription) ({metric}{_OF})"


TOPIC = Dashboard(
    "topic",
    "topic",
    (Variable("topic", "Topic", "label_values(pulsar_scalable_topic_active_segments, topic)", multi=False),),
    (
        Row(
            "Layout",
            [
                Panel(
                    "Segments",
                    "short",
                    [
                        Query(_one("pulsar_scalable_topic_active_segments"), "active"),
                        Query(_one("scalable_topics_sealed_segments"), "sealed"),
                        Query(
                            _by_cluster("scalable_topics_undrained_segments"), "sealed and not drained, {{connection}}"
                        ),
                    ],
                    "Sealed ones go once they are drained and past their retention.",
                ),
                Panel("Epoch", "short", [Query(_one("scalable_topics_layout_epoch"), "epoch")]),
                Panel(
                    "Changes",
                    "short",
                    [
                        Query(f"sum({increase('pulsar_scalable_topic_auto_splits_total', _OF)})", "automatic splits"),
                        Query(f"sum({increase('pulsar_scalable_topic_auto_merges_total', _OF)})", "automatic merges"),
                        Query(
                            f"sum({increase('pulsar_scalable_topic_auto_rebuckets_total', _OF)})",
                            "automatic rebuckets",
                        ),
                        Query(
                            f"sum({increase('scalable_topics_rebucket_rollovers_total', _OF)})",
                            "rebuckets, also by hand",
                        ),
                        Query(
                            f"sum by (connection) ({increase('scalable_topics_segments_replaced_total', _OF)})",
                            "replacements, {{connection}}",
                        ),
                    ],
                    "Replacements: somebody terminated or deleted an active segment.",
                ),
            ],
        ),
        Row(
            "Load",
            [
                Panel(
                    "Messages",
                    "cps",
                    [
                        Query(_one("scalable_topics_msg_rate_in"), "in"),
                        Query(_one("scalable_topics_msg_rate_out"), "out"),
                    ],
                    "Sums over the active segments, not shown while that of one of them is not known.",
                ),
                Panel(
                    "Bytes",
                    "Bps",
                    [
                        Query(_one("scalable_topics_bytes_rate_in"), "in"),
                        Query(_one("scalable_topics_bytes_rate_out"), "out"),
                    ],
                ),
                Panel(
                    "Held back",
                    "short",
                    [
                        Query(
                            f"sum({increase('pulsar_scalable_topic_split_suppressed_max_segments_total', _OF)})",
                            "splits, maxSegments",
                        ),
                        Query(
                            f"sum({increase('pulsar_scalable_topic_merge_suppressed_max_depth_total', _OF)})",
                            "merges, maxDagDepth",
                        ),
                    ],
                    "Decisions that wanted a change but for a bound.",
                ),
                Panel(
                    "Messages in by segment",
                    "cps",
                    [Query(f"max by (segment) (scalable_topics_segment_msg_rate_in{_OF})", "{{segment}}")],
                    "With operator.perSegmentMetrics.",
                    width=12,
                ),
                Panel(
                    "Bytes in by segment",
                    "Bps",
                    [Query(f"max by (segment) (scalable_topics_segment_bytes_rate_in{_OF})", "{{segment}}")],
                    "With operator.perSegmentMetrics.",
                    width=12,
                ),
            ],
        ),
        Row(
            "Consumers",
            [
                Panel(
                    "Backlog",
                    "short",
                    [Query(_of_subscription("scalable_topics_backlog"), "{{subscription}}")],
                    "Messages of the active segments, as last sampled; brokers count a batch as one.",
                ),
                Panel(
                    "Useful parallelism",
                    "short",
                    [Query(_one("scalable_topics_useful_parallelism"), "consumers")],
                    "Ordered consumers of one subscription that the topic can employ.",
                ),
                Panel(
                    "Age of the oldest undrained segment",
                    "s",
                    [
                        Query(
                            "time() - min by (topic, connection)"
                            f" (scalable_topics_undrained_segment_sealed_timestamp_seconds{_OF})",
                            "since its seal, {{connection}}",
                        )
                    ],
                ),
                Panel(
                    "Entry buckets withheld",
                    "short",
                    [Query(_of_subscription("scalable_topics_buckets_withheld"), "{{subscription}}")],
                    "Nobody reads them until their former readers let go.",
                ),
                Panel(
                    "Entry buckets that changed hands",
                    "short",
                    [
                        Query(
                            f"sum by (subscription) ({increase('scalable_topics_bucket_reassignments_total', _OF)})",
                            "{{subscription}}",
                        )
                    ],
                ),
                Panel(
                    "Sealed segments drained together",
                    "short",
                    [Query(_of_subscription("scalable_topics_draining_segments"), "{{subscription}}")],
                ),
            ],
        ),
        Row(
            "Trouble",
            [
                Panel(
                    "Operation under way",
                    "s",
                    [
                        Query(
                            "time() - min by (connection, kind)"
                            f" (scalable_topics_operation_start_timestamp_seconds{_OF})",
                            "{{kind}}, {{connection}}",
                        )
                    ],
                    "How long it has been in the journal.",
                    width=12,
                ),
                Panel(
                    "Active segments that are terminated",
                    "short",
                    [Query(_by_cluster("scalable_topics_terminated_active_segments"), "segments, {{connection}}")],
                    "On their broker, at the last comparison; successors replace them.",
                    width=12,
                ),
            ],
        ),
    ),
)
