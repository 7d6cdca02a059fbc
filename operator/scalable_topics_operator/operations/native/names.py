"""Whose a scalable topic of the brokers is (R1). Pure.

Brokers take properties with the call that makes a topic and never again. So a claim is there from the first moment or
never: it is neither released nor rewritten, and a topic that was adopted says for ever whose it was before.
"""

from __future__ import annotations

from scalable_topics.layout import SegmentLayout
from scalable_topics_operator.operations.claims import Judgement, Verdict, judge_name
from scalable_topics_operator.operations.errors import NameRefused
from scalable_topics_operator.operations.native.news import is_another
from scalable_topics_operator.operations.native.protocols import NativeTopic
from scalable_topics_operator.operations.protocols import Claim, NameState


def judge_topic(found: NativeTopic, mine: Claim, *, owner_alive: bool, adopt: bool) -> Judgement:
    """Decide what a topic that exists means for the object that wants its name.

    Args:
        found: as brokers have it.
        mine: the claim this object would make.
        owner_alive: whether the object that the claim names still exists in this Kubernetes cluster.
        adopt: `spec.adopt`, already checked against what the connection allows.
    """
    if found.claim is not None:
        return judge_name(NameState(exists=True, claim=found.claim), mine, owner_alive=owner_alive, adopt=adopt)
    if adopt:
        return Judgement(Verdict.ADOPTABLE)
    return Judgement(
        Verdict.REFUSED,
        "NameTaken",
        "the brokers have a scalable topic of that name which no operator has made: set spec.adopt: true to take it "
        "over with what is in it, or choose another name",
    )


def require_ours(recorded: SegmentLayout | None, found: NativeTopic, mine: Claim) -> None:
    """Make sure that a topic which this object looks after is still its own.

    It is as long as it is the very topic that was recorded. One that was deleted and made again without a claim is
    what clients did who named it: it takes the place of what is lost. Raises NameRefused for somebody else's.
    """
    if recorded is not None and not is_another(recorded, found.layout):
        return
    if found.claim is None or found.claim.resource_uid == mine.resource_uid:
        return
    owner = found.claim
    raise NameRefused(
        "ClaimedElsewhere",
        f"the topic was deleted and made again by ScalableTopic {owner.resource_namespace}/{owner.resource_name} of "
        f"Kubernetes cluster {owner.kubernetes_uid}; nothing is done to it from here any more. Delete this object, "
        "which leaves the topic as it is",
    )
