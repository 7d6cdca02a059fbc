"""Scalable topics for Apache Pulsar: what applications and the operator share.

`layout` holds the model (segments, hash ranges, names, routing), `sdk` the client library.
"""
