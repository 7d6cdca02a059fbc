"""Where pipelines run: what the keeper of pipelines asks of it (R34)."""

from __future__ import annotations

from typing import Protocol

from scalable_topics_operator.backends.admin.credentials import Credentials
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.load.pipeline_job import PipelineJob, RunnerState


class PipelineRunner(Protocol):
    """Runs the pipelines of connections. Only a connection's leader asks for anything."""

    async def keep(
        self, connection: Body, job: PipelineJob, credentials: Credentials, thresholds: bytes
    ) -> RunnerState:
        """Have a pipeline run as described, repair it if it does not, and say how it stands.

        Asked for again and again, every few seconds; writes only what differs.

        Args:
            connection: the object, its spec parsed already; owns what is made.
            job: what the pipeline is to do.
            credentials: of the connection, as last read.
            thresholds: the file of thresholds, JSON.

        Raises KubeError, and OSError where files are written.
        """

    async def release(self, connection: ObjectKey) -> bool:
        """This replica does not lead the connection any more: end what is this replica's own. Does not raise.

        Answers whether another replica may begin at once, because nothing of this one is at work any more.
        """

    async def remove(self, connection: ObjectKey) -> None:
        """The connection wants no such pipeline any more, or is gone: take away what was made. Raises KubeError."""
