"""Native scalable topics of Pulsar 5: made and changed over plain HTTP, used by Pulsar's own V5 client."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dev.access import PulsarAccess
from scalable_topics.layout import SegmentLayout, from_pip468
from tests.support.pulsar_view import PulsarView
from tests.support.v5_client import V5Client
from tests.support.waiting import eventually

NAMESPACE = "tests/default"


@dataclass(frozen=True, slots=True)
class NativeTopic:
    """A native scalable topic, called by none of the code under test.

    Attributes:
        name: `tenant/namespace/topic`.
        view: a superuser's.
    """

    name: str
    view: PulsarView

    @property
    def url(self) -> str:
        """Its name for clients."""
        return f"topic://{self.name}"

    async def create(self, segments: int) -> None:
        """Create it with so many segments, which no load of a test changes."""
        await self.call("PUT", f"?numInitialSegments={segments}", {})
        await self.call("POST", "/autoScalePolicy", {"enabled": False})

    async def split(self, segment_id: int) -> None:
        """Split a segment in its middle."""
        await self.call("POST", f"/split/{segment_id}")

    async def merge(self, first: int, second: int) -> None:
        """Merge two adjacent segments."""
        await self.call("POST", f"/merge/{first}/{second}")

    async def keep(self, subscription: str) -> None:
        """Create a subscription whose consumer comes later: until then it keeps all that is stored."""
        await self.call("PUT", f"/subscriptions/{subscription}?type=QUEUE")

    async def drained(self, *subscriptions: str) -> None:
        """Wait until these have acknowledged everything that is stored on any segment."""

        async def backlogs() -> dict[str, int]:
            known = (await self.call("GET", "/stats"))["subscriptions"]
            return {name: known[name]["msgBacklog"] for name in subscriptions}

        await eventually(
            backlogs, lambda found: not any(found.values()), what=f"backlogs of {self.name}", within_seconds=90
        )

    async def layout(self) -> SegmentLayout:
        """Its layout, read by our kernel."""
        return from_pip468(await self.call("GET", ""))

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """One call of the admin API, under the topic's path."""
        return await self.view.call(method, f"scalable/{self.name}{path}", body)


@pytest.fixture
async def native_view(native_pulsar: PulsarAccess) -> AsyncIterator[PulsarView]:
    """A superuser's plain view of the native broker."""
    async with PulsarView(native_pulsar.admin_url, native_pulsar.superuser_token) as view:
        yield view


@pytest.fixture
async def topic(native_view: PulsarView) -> AsyncIterator[NativeTopic]:
    """A name for a native scalable topic, which goes after the test."""
    made = NativeTopic(f"{NAMESPACE}/v5-{uuid.uuid4().hex[:10]}", native_view)
    yield made
    await native_view.call("DELETE", f"scalable/{made.name}?force=true", allow=(404,))


@pytest.fixture
async def v5(native_pulsar: PulsarAccess, tmp_path: Path) -> AsyncIterator[V5Client]:
    """Pulsar's V5 client, with the token of a plain client."""
    async with V5Client.connected(native_pulsar.service_url, native_pulsar.client_token_file, tmp_path) as client:
        yield client
