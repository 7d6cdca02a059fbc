"""Fleets of many topics in virtual time: how what the control plane needs grows with them."""
