"""The thread that stands for election, where it does not need an API server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from scalable_topics_operator.cluster.election import LeaseTimes, Purpose
from scalable_topics_operator.cluster.kube_login import NoKubernetes
from scalable_topics_operator.cluster.leadership import Leadership


class Nobody:
    """Is told and does nothing."""

    def gained(self, shard: int, term: int) -> None:
        """See `LeadershipEvents`."""

    def lost(self, shard: int) -> None:
        """See `LeadershipEvents`."""

    def handing_over(self, shard: int) -> None:
        """See `LeadershipEvents`."""

    def wrote(self, purpose: Purpose, *, succeeded: bool) -> None:
        """See `LeadershipEvents`."""


async def test_an_election_that_cannot_go_on_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A replica that would never lead again must not live on silently."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("nothing of use")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    leadership = Leadership("default", "r0", 4, LeaseTimes(1.0), Nobody())
    leadership.start()
    with pytest.raises(NoKubernetes, match="cannot be read"):
        async with asyncio.timeout(5):
            await leadership.ended()
    await leadership.stop()
    assert leadership.hold(0) is None
