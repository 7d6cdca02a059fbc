"""A walk through the pages: which commands are pasted into one shell, in which order, and how.

It begins in a clean clone, as the tutorial does, and ends when nothing of it is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.documentation.pages import ROOT, Fence, fences, slug
from tests.support.documentation.shell import Command, commands_of

_TUTORIAL = "docs/tutorial.md"
_LAST = "clean-up"


@dataclass(frozen=True, slots=True)
class Part:
    """Blocks of a page.

    Args:
        page: its path.
        headings: those that they are under; all if empty.
        without: headings that are left out.
        is_compared: whether what is printed must be what the page shows; false where that is of another story.
    """

    page: str
    headings: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    is_compared: bool = True

    def blocks(self) -> list[Fence]:
        """Its blocks. Raises ValueError for a heading that has none."""
        found = [fence for fence in fences(ROOT / self.page) if fence.heading not in self.without]
        if missing := set(self.headings) - {fence.heading for fence in found}:
            raise ValueError(f"{self.page} has no code under {sorted(missing)}")
        return [fence for fence in found if not self.headings or fence.heading in self.headings]


@dataclass(frozen=True, slots=True)
class Between:
    """What the pages do not tell because it is of this walk alone.

    Args:
        why: it is needed.
        script: for the shell.
    """

    why: str
    script: str


WALK: tuple[Part | Between, ...] = (
    Part(_TUTORIAL, without=(_LAST,)),
    Part("docs/howto/application.md"),
    Part("docs/howto/access.md"),
    Part("docs/howto/autoscale-consumers.md"),
    Part("docs/howto/migrate.md"),
    Part("docs/howto/backup.md"),
    Between(
        "what a topic that was just restored has not been decided on yet cannot be explained",
        "until stopics explain orders --service-account default/billing > explained.txt; do sleep 1; done",
    ),
    Part("docs/gateway.md", ("who-may-ask",)),
    Between("a way to leave the option out", "export STOPICS_SERVICE_ACCOUNT=default/dashboard"),
    Part("docs/autoscaling.md", ("how-to-see-why",), is_compared=False),
    Part("docs/cli.md", ("the-picture", "the-way-to-the-gateway", "migrations"), is_compared=False),
    Part("docs/policies.md", is_compared=False),
    Part("README.md", (slug("Scalable topics for Apache Pulsar on Kubernetes"),), is_compared=False),
    Between("what docs/local-cluster.md shows and the tutorial does not", "$KUBECTL get namespaces\nmake status"),
    Between(
        "the topic that is made and deleted through REST has the same name; its caller may do everything",
        """kubectl patch stopic orders --type=merge -p '{"spec": {"deletionPolicy": "Delete"}}'
kubectl delete stopic orders --timeout=60s
kubectl create serviceaccount anybody
kubectl create clusterrolebinding anybody --clusterrole=cluster-admin --serviceaccount=default:anybody
TOKEN=$(kubectl create token anybody --audience scalable-topics)""",
    ),
    Part("docs/gateway.md", ("the-admin-rest",)),
    Between(
        "the tutorial goes on with its topic",
        "kubectl create -f orders.yaml\nkubectl wait --for=condition=Ready stopic/orders --timeout=60s",
    ),
    Part(_TUTORIAL, (_LAST,)),
)


@dataclass(frozen=True, slots=True)
class Step:
    """A command of the walk.

    Args:
        command: what is pasted.
        page: that prints it; empty for what none does.
        heading: under which it is.
        is_compared: whether what is printed must be what the page shows.
    """

    command: Command
    page: str = ""
    heading: str = ""
    is_compared: bool = False


def walked(story: tuple[Part | Between, ...] = WALK) -> Iterator[Step]:
    """The commands of a walk in their order."""
    for part in story:
        if isinstance(part, Between):
            yield Step(Command("the walk itself", part.script))
            continue
        for fence in part.blocks():
            for command in commands_of([fence]):
                yield Step(command, part.page, fence.heading, part.is_compared and command.output is not None)
