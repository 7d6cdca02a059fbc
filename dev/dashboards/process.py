"""What is seen of the operator's replicas, and of the load of Pulsar clusters."""

from dev.dashboards.panels import Dashboard, Panel, Query, Row, Variable, increase

_OURS = '{namespace=~"$namespace"}'


def _rate(metric: str, labels: str) -> str:
    return f"sum by ({labels}) (rate({metric}{_OURS}[$__rate_interval]))"


def _slowest(metric: str, labels: str = "") -> str:
    by = f"le, {labels}" if labels else "le"
    return f"histogram_quantile(0.99, {_rate(f'{metric}_bucket', by)})"


OPERATOR = Dashboard(
    "operator",
    "operator",
    (Variable("namespace", "Operator's namespace", "label_values(scalable_topics_shards_held, namespace)"),),
    (
        Row(
            "Leadership",
            [
                Panel(
                    "Shards led",
                    "short",
                    [Query(f"sum by (pod) (scalable_topics_shards_held{_OURS})", "{{pod}}")],
                    "The sum is the number of shards; less means that some have no leader.",
                ),
                Panel(
                    "Shards lost and handed over",
                    "short",
                    [
                        Query(
                            f"sum by (pod) ({increase('scalable_topics_shards_lost_total', _OURS)})",
                            "lost {{pod}}",
                        ),
                        Query(
                            f"sum by (pod) ({increase('scalable_topics_shards_handed_over_total', _OURS)})",
                            "handed over {{pod}}",
                        ),
                    ],
                ),
                Panel(
                    "Writes of Leases",
                    "ops",
                    [Query(_rate("scalable_topics_lease_writes_total", "purpose, result"), "{{purpose}} {{result}}")],
                ),
            ],
        ),
        Row(
            "Work",
            [
                Panel(
                    "Objects that wait",
                    "short",
                    [Query(f"sum by (pod) (scalable_topics_queue_waiting{_OURS})", "{{pod}}")],
                ),
                Panel(
                    "Longest wait",
                    "s",
                    [Query(f"max by (pod) (scalable_topics_queue_oldest_wait_seconds{_OURS})", "{{pod}}")],
                ),
                Panel("Objects known", "short", [Query(f"max by (kind) (scalable_topics_objects{_OURS})", "{{kind}}")]),
                Panel(
                    "Reconciles",
                    "ops",
                    [Query(_rate("scalable_topics_reconciles_total", "kind, result"), "{{kind}} {{result}}")],
                ),
                Panel(
                    "Reconciles, 99%", "s", [Query(_slowest("scalable_topics_reconcile_seconds", "kind"), "{{kind}}")]
                ),
                Panel(
                    "Finished operations",
                    "short",
                    [
                        Query(
                            f"sum by (kind, result) ({increase('scalable_topics_operations_total', _OURS)})",
                            "{{kind}} {{result}}",
                        )
                    ],
                ),
                Panel("Decisions", "ops", [Query(_rate("scalable_topics_decisions_total", "code"), "{{code}}")]),
                Panel("Decisions, 99%", "s", [Query(_slowest("scalable_topics_decision_seconds"), "99%")]),
                Panel(
                    "Consumers",
                    "short",
                    [
                        Query(f"sum({increase(metric, _OURS)})", legend)
                        for metric, legend in (
                            ("scalable_topics_assignments_written_total", "assignments written"),
                            ("scalable_topics_consumers_removed_total", "consumers removed"),
                            ("scalable_topics_handovers_overdue_total", "hand-overs overdue"),
                        )
                    ],
                ),
            ],
        ),
        Row(
            "Brokers",
            [
                Panel(
                    "Admin calls",
                    "ops",
                    [
                        Query(
                            _rate("scalable_topics_admin_call_seconds_count", "operation, outcome"),
                            "{{operation}} {{outcome}}",
                        )
                    ],
                ),
                Panel(
                    "Admin calls, 99%",
                    "s",
                    [Query(_slowest("scalable_topics_admin_call_seconds", "operation"), "{{operation}}")],
                ),
                Panel(
                    "Connections that answer",
                    "short",
                    [Query("min by (namespace, name) (scalable_topics_connection_up)", "{{namespace}}/{{name}}")],
                    "0 where any replica cannot reach it.",
                ),
                Panel(
                    "Topics left behind",
                    "short",
                    [Query("max by (namespace, name) (scalable_topics_orphans)", "{{namespace}}/{{name}}")],
                ),
            ],
        ),
        Row(
            "Gateway",
            [
                Panel(
                    "Requests",
                    "reqps",
                    [Query(_rate("scalable_topics_gateway_requests_total", "route, code"), "{{route}} {{code}}")],
                    width=6,
                ),
                Panel(
                    "Requests, 99%",
                    "s",
                    [Query(_slowest("scalable_topics_gateway_request_seconds", "route"), "{{route}}")],
                    width=6,
                ),
                Panel(
                    "Sent on to leaders",
                    "reqps",
                    [Query(_rate("scalable_topics_gateway_forwarded_total", "outcome"), "{{outcome}}")],
                    width=6,
                ),
                Panel(
                    "Sessions",
                    "short",
                    [Query(f"sum by (kind) (scalable_topics_gateway_sessions{_OURS})", "{{kind}}")],
                    width=6,
                ),
            ],
        ),
    ),
)

_CONNECTION = '{namespace=~"$connection_namespace",name=~"$connection"}'
_NAMED = "{{namespace}}/{{name}}"


def _worst(function: str, metric: str) -> Query:
    return Query(f"{function} by (namespace, name) ({metric}{_CONNECTION})", _NAMED)


PIPELINE = Dashboard(
    "pipeline",
    "load pipeline",
    (
        Variable("connection_namespace", "Namespace", "label_values(scalable_topics_connection_up, namespace)"),
        Variable("connection", "Connection", "label_values(scalable_topics_connection_up, name)"),
    ),
    (
        Row(
            "Is the load known?",
            [
                Panel(
                    "Age of the load",
                    "s",
                    [_worst("min", "scalable_topics_load_age_seconds")],
                    "Nothing is split or merged by what is older than three intervals of spec.load.",
                ),
                Panel(
                    "Brokers without an answer",
                    "short",
                    [_worst("max", "scalable_topics_load_brokers_missing")],
                ),
                Panel(
                    "Topics in the last look",
                    "short",
                    [
                        Query(
                            f"max by (namespace, name) (scalable_topics_load_segments{_CONNECTION})",
                            f"{_NAMED} to rely on",
                        ),
                        Query(
                            f"max by (namespace, name) (scalable_topics_load_unsettled_segments{_CONNECTION})",
                            f"{_NAMED} unsettled",
                        ),
                    ],
                    "Unsettled ones were loaded or unloaded a moment ago; their rates mean nothing yet.",
                ),
            ],
        ),
        Row(
            "Pipelines",
            [
                Panel(
                    "Pipeline followed",
                    "short",
                    [_worst("min", "scalable_topics_pipeline_followed")],
                    "0 while the brokers are asked instead; only of connections with a pipeline.",
                ),
                Panel(
                    "Pipeline up",
                    "short",
                    [_worst("max", "scalable_topics_pipeline_up")],
                    "As its runner says: the sidecar, or the SparkApplication.",
                ),
                Panel(
                    "Duration of a batch",
                    "s",
                    [_worst("max", "scalable_topics_pipeline_batch_seconds")],
                    "From its look at the brokers to its last record; it has to fit into an interval.",
                ),
                Panel(
                    "Looks at the brokers",
                    "ops",
                    [
                        Query(
                            "sum by (namespace, name, source)"
                            f" (rate(scalable_topics_load_samples_total{_CONNECTION}[$__rate_interval]))",
                            f"{_NAMED} {{{{source}}}}",
                        )
                    ],
                    "By the pipeline, or by the operator in its place.",
                    width=12,
                ),
                Panel(
                    "Decisions",
                    "ops",
                    [Query("sum by (code) (rate(scalable_topics_decisions_total[$__rate_interval]))", "{{code}}")],
                    "Of all connections; `load-stale` and its like are those for want of a load to go by.",
                    width=12,
                ),
            ],
        ),
    ),
)
