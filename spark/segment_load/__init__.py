"""The load pipeline on Spark: what brokers say of segments, as records that controllers follow (R34, R35).

`broker_source` reads, `change_filter` finds what is news, `record_sink` keeps it, `stream` runs them.
"""
