"""What the operator and a supervisor of pipelines beside it tell each other through files of a shared folder. Pure.

Each connection has a folder by its uid. `JOB_FILE` says what to run; the operator touches it as long as that may run,
and takes it away when it may not. `STATE_FILE` is the supervisor's answer, touched as long as it lives, and gone when
nothing of the job is at work any more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from scalable_topics.layout.json_fields import parse_json
from scalable_topics_operator.load.pipeline_job import RunnerPhase, RunnerState

JOB_FILE, STATE_FILE = "job.json", "state.json"
UNTOUCHED_SECONDS = 15.0
"""A file that was not touched for so long is nobody's any more."""
END_SECONDS = 10.0
"""How long a pipeline may take to end before it is killed."""


def encode_job(arguments: Sequence[str]) -> str:
    """What to run: the arguments of `python -m segment_load`."""
    return json.dumps({"arguments": list(arguments)})


def decode_job(text: str) -> list[str]:
    """The arguments. Raises KeyError, TypeError or ValueError for what is no job."""
    return [str(one) for one in parse_json(text)["arguments"]]


def encode_state(state: RunnerState) -> str:
    """How a job stands."""
    return json.dumps({"phase": state.phase.value, "reason": state.reason, "message": state.message})


def decode_state(text: str) -> RunnerState:
    """Read that. Raises KeyError, TypeError or ValueError for what is no state."""
    found = parse_json(text)
    return RunnerState(RunnerPhase(found["phase"]), str(found["reason"]), str(found["message"]))
