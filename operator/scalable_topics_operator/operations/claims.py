"""Whose a scalable topic's name is (R1). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scalable_topics_operator.operations.protocols import Claim, NameState


class Verdict(StrEnum):
    """What may be done with a name."""

    FREE = "Free"
    MIGRATABLE = "Migratable"
    OURS = "Ours"
    RECOVERABLE = "Recoverable"
    ADOPTABLE = "Adoptable"
    REFUSED = "Refused"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, and for a refusal its reason code and what to do about it."""

    verdict: Verdict
    reason: str = ""
    message: str = ""


def judge_name(name: NameState, mine: Claim, *, owner_alive: bool, adopt: bool, migrates: bool = False) -> Judgement:
    """Decide what a name's state means for the object that wants it.

    Args:
        name: what exists under the plain name.
        mine: the claim this object would make.
        owner_alive: whether the object named by the existing claim still exists in this Kubernetes cluster.
        adopt: `spec.adopt`, already checked against what the connection allows.
        migrates: whether an ordinary topic of that name is to be migrated.
    """
    if not name.exists:
        return Judgement(Verdict.FREE)
    claim = name.claim
    if claim is None and migrates:
        return Judgement(Verdict.MIGRATABLE)
    if claim is None:
        shape = f"a partitioned topic ({name.partitions} partitions)" if name.partitions else "an ordinary topic"
        return Judgement(
            Verdict.REFUSED,
            "NameTaken",
            f"the name belongs to {shape}; to turn it into a scalable topic without losing data set "
            "spec.migrateFrom or create a SegmentOperation of type Migrate, else choose another name",
        )
    if claim.backend != mine.backend:
        return Judgement(
            Verdict.REFUSED,
            "BackendMismatch",
            f"the topic was created with backend {claim.backend} and keeps it; the connection now gives {mine.backend}",
        )
    same_installation = claim.shares_installation(mine)
    if same_installation and claim.resource_uid == mine.resource_uid:
        return Judgement(Verdict.OURS)
    if same_installation and (claim.released or not owner_alive):
        return Judgement(Verdict.RECOVERABLE)
    owner = f"{claim.resource_namespace}/{claim.resource_name}"
    if same_installation:
        return Judgement(
            Verdict.REFUSED,
            "Conflict",
            f"the topic is already declared by ScalableTopic {owner}; remove one of them",
        )
    if adopt:
        return Judgement(Verdict.ADOPTABLE)
    return Judgement(
        Verdict.REFUSED,
        "ClaimedElsewhere",
        f"the topic is claimed by ScalableTopic {owner} of another operator installation; set spec.adopt: true "
        "to take it over once that installation has let go of it",
    )


def why_lost(name: NameState, mine: Claim) -> str:
    """What tells that a topic we had a claim on belongs to another object now; empty while it is ours.

    A missing claim is no loss: drift repair puts our claim back. Neither is one that an earlier object of this
    installation released, which may arrive late.
    """
    claim = name.claim
    if claim is None or claim.resource_uid == mine.resource_uid:
        return ""
    if claim.released and claim.shares_installation(mine):
        return ""
    return (
        f"the topic was taken over by ScalableTopic {claim.resource_namespace}/{claim.resource_name} of Kubernetes "
        f"cluster {claim.kubernetes_uid}; nothing is done to it from here any more. Delete this object, which leaves "
        "the topic as it is"
    )
