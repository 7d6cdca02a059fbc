"""Faults that others have paid for, each with the tests that would notice it here."""
