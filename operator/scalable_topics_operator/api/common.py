"""What the custom resources share: the base model, object metadata, conditions and references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from scalable_topics.layout import MAX_BUCKETS, WHOLE
from scalable_topics_operator.api.schema_extra import DATE_TIME, list_map

GROUP = "scalabletopics.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

MOST_WHOLE = 2**53 - 1
"""What every reader of JSON takes for a whole number."""
MOST_POSITIONS = 2048
"""Of a checkpoint: the segments of a layout (R29), with four entry buckets each."""

_DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
_PULSAR_NAMESPACE = r"^[-=:.\w]+/[-=:.\w]+$"

ObjectName = Annotated[str, Field(max_length=253, pattern=_DNS_SUBDOMAIN)]
NamespaceName = Annotated[str, Field(max_length=63, pattern=_DNS_LABEL)]
SecretKey = Annotated[str, Field(max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")]
PulsarNamespace = Annotated[str, Field(max_length=255, pattern=_PULSAR_NAMESPACE)]
Timestamp = Annotated[str, DATE_TIME]
SegmentId = Annotated[int, Field(ge=0)]
RangeText = Annotated[str, Field(pattern=r"^[0-9a-f]{4}-[0-9a-f]{4}$")]
Buckets = Annotated[int, Field(ge=1, le=1024)]
Backend = Literal["Classic", "Native"]
InitialPosition = Literal["Earliest", "Latest"]
DeletionPolicy = Literal["Retain", "Delete"]


class ApiModel(BaseModel):
    """Base of all models: camelCase on the wire, frozen, tolerant of fields it does not know.

    The API server prunes unknown fields by the generated schema; an operator older than the object's
    writer must still be able to read the rest.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="ignore",
        use_attribute_docstrings=True,
    )

    def to_json_object(self) -> dict[str, Any]:
        """The wire form, without the fields that are unset."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class CheckpointPosition(ApiModel):
    """The last message of a segment, or of one of its entry buckets, that a checkpoint counts as received (R22)."""

    segment: SegmentId
    """The segment."""
    bucket: Annotated[int, Field(ge=WHOLE, le=MAX_BUCKETS - 1)] = WHOLE
    """Entry bucket of the segment; -1 for all that have no position of their own."""
    ledger_id: Annotated[int, Field(ge=0, le=MOST_WHOLE)]
    """Ledger of the segment's topic."""
    entry_id: Annotated[int, Field(ge=-1, le=MOST_WHOLE)]
    """Entry within the ledger; -1 before its first."""
    batch_index: Annotated[int, Field(ge=-1, le=MOST_WHOLE)] = -1
    """Place within the entry's batch; -1 for all of the entry."""


class ObjectMeta(ApiModel):
    """The part of Kubernetes object metadata that controllers use."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class Condition(ApiModel):
    """One aspect of the object's state, as in Kubernetes' meta/v1."""

    type: Annotated[
        str,
        Field(
            min_length=1,
            max_length=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
    ]
    """Kind of condition, such as Ready."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """metadata.generation this was found for."""
    last_transition_time: Timestamp
    """When `status` last changed."""
    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=_REASON)]
    """Why, in one CamelCase word."""
    message: Annotated[str, Field(max_length=32768)]
    """Why, for people."""


Conditions = Annotated[tuple[Condition, ...], list_map("type")]


class SecretRef(ApiModel):
    """A Secret in the same namespace."""

    name: ObjectName
    """Name of the Secret."""


class SecretKeyRef(SecretRef):
    """One key of a Secret in the same namespace."""

    key: SecretKey
    """Key within the Secret."""


class LocalObjectRef(ApiModel):
    """An object in the same namespace."""

    name: ObjectName
    """Name of the object."""


class ObjectRef(ApiModel):
    """An object, in the same namespace unless another is named."""

    name: ObjectName
    """Name of the object."""
    namespace: NamespaceName | None = None
    """Its namespace; this object's own if left out."""


class RequestRef(ApiModel):
    """Who asked for an operation: a SegmentOperation, the topic's own spec, a policy or drift repair."""

    kind: str
    """Kind of the object that asked."""
    name: str
    """Its name."""
    uid: str
    """Its uid."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`.

    Args:
        name: heading.
        path: JSON path in the object.
        type: `string`, `integer`, `boolean` or `date`.
        priority: 0 always shown, 1 with `-o wide`.
    """

    name: str
    path: str
    type: str = "string"
    priority: int = 0


AGE = Column("Age", ".metadata.creationTimestamp", "date")


def condition_column(heading: str, condition: str, part: str, priority: int = 0) -> Column:
    """A column that shows `status`, `reason` or `message` of one condition."""
    return Column(heading, f'.status.conditions[?(@.type=="{condition}")].{part}', "string", priority)


@dataclass(frozen=True, slots=True)
class Scale:
    """JSON paths of the scale subresource (R30)."""

    spec_path: str
    status_path: str
    selector_path: str


@dataclass(frozen=True, slots=True)
class Definition:
    """How a kind is named and shown.

    Args:
        plural: plural resource name.
        short_name: what people type.
        columns: columns of `kubectl get`.
        scale: the scale subresource, where the kind has one.
        selectable_fields: JSON paths usable as field selectors.
    """

    plural: str
    short_name: str
    columns: tuple[Column, ...]
    scale: Scale | None = None
    selectable_fields: tuple[str, ...] = ()


class CustomResource(ApiModel):
    """Base of the five kinds."""

    definition: ClassVar[Definition]

    api_version: str = API_VERSION
    metadata: ObjectMeta = ObjectMeta()


def first_problem(error: ValidationError) -> str:
    """The first thing that is wrong with an object, and where, in one line."""
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
