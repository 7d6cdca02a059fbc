"""What holds for every layer of tests."""

from __future__ import annotations

from hypothesis import settings

# A loaded machine is no failure: how long an example takes says nothing about the code.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
