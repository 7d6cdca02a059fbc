"""A local Kubernetes control plane and Apache Pulsar brokers for development, tests and the demo.

Everything comes from package registries: the Kubernetes programs are built from Go modules (`kube/`), the
brokers are Maven jars (`pulsar/`). `python -m dev --help` is the command line, `dev.instance.LocalCluster`
the interface for tests.
"""
