"""Whole operator replicas over models of an API server, brokers and a network, in virtual time."""
