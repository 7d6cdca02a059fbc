"""The body of a request to restore a checkpoint (R22). Pure."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scalable_topics_operator.api.common import MOST_POSITIONS, MOST_WHOLE, CheckpointPosition
from scalable_topics_operator.gateway.refusal import Refusal

_STRICT = ConfigDict(strict=True, extra="forbid", populate_by_name=False)


class _Position(CheckpointPosition):
    model_config = _STRICT

    segment: Annotated[int, Field(ge=0, le=MOST_WHOLE)]


class _Checkpoint(BaseModel):
    model_config = _STRICT

    positions: Annotated[list[_Position], Field(min_length=1, max_length=MOST_POSITIONS)]


def read_positions(body: Any) -> list[dict[str, int]]:
    """The positions as a SegmentOperation has them. Raises Refusal: 400."""
    try:
        positions = _Checkpoint.model_validate(body).positions
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise Refusal(400, f"{where}: {first['msg']}; positions are wanted as checkpoints have them") from None
    if len({(one.segment, one.bucket) for one in positions}) < len(positions):
        raise Refusal(
            400, "positions names a segment, or a bucket of it, twice; merge the checkpoints of the group's consumers"
        )
    return [one.to_json_object() for one in positions]
