"""The body of a request to restore a checkpoint (R22). Pure."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.schemas import MOST_POSITIONS, MOST_WHOLE

_Number = Annotated[int, Field(ge=0, le=MOST_WHOLE)]


class _Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, frozen=True, strict=True, extra="forbid")


class _Position(_Model):
    segment: _Number
    ledger_id: _Number
    entry_id: Annotated[int, Field(ge=-1, le=MOST_WHOLE)]
    batch_index: Annotated[int, Field(ge=-1, le=MOST_WHOLE)] = -1


class _Checkpoint(_Model):
    positions: Annotated[list[_Position], Field(min_length=1, max_length=MOST_POSITIONS)]


def read_positions(body: Any) -> list[dict[str, int]]:
    """The positions as a SegmentOperation has them. Raises Refusal: 400."""
    try:
        positions = _Checkpoint.model_validate(body).positions
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise Refusal(400, f"{where}: {first['msg']}; positions are wanted as checkpoints have them") from None
    if len({one.segment for one in positions}) < len(positions):
        raise Refusal(400, "positions names a segment twice; merge the checkpoints of the group's consumers")
    return [one.model_dump(by_alias=True) for one in positions]
