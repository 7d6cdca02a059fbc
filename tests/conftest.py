"""What holds for every layer of tests."""

from __future__ import annotations

import pytest
from hypothesis import settings

# What is asserted there says what it found, as in the tests.
pytest.register_assert_rewrite("tests.support")

# A loaded machine is no failure: how long an example takes says nothing about the code.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
