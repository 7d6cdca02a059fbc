"""The operator that keeps scalable topics on Apache Pulsar (DESIGN §3 names its packages)."""
