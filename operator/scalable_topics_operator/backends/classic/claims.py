"""Taking, rewriting and giving up a scalable topic's plain name (R1)."""

from __future__ import annotations

from collections.abc import Mapping

from scalable_topics.layout import TopicName
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.claim_properties import (
    CLAIM_KEY,
    MIGRATED_KEY,
    claim_of,
    claim_properties,
    migrated_from_of,
    migration_properties,
    user_properties,
)
from scalable_topics_operator.backends.classic.look import is_terminated
from scalable_topics_operator.backends.classic.protection import Protection
from scalable_topics_operator.operations.errors import BackendUnavailable, NameTaken, TopicMissing
from scalable_topics_operator.operations.migrated_from import MigratedFrom
from scalable_topics_operator.operations.protocols import Claim, NameState

# A broker that is handing the topic over may answer a terminate that does not stick (measured): look, and repeat.
_SEAL_ATTEMPTS = 4


class Claims:
    """Keeps the base-name topics of scalable topics.

    Args:
        admin: the cluster.
        protection: against inactive-topic deletion.
    """

    def __init__(self, admin: PulsarAdmin, protection: Protection) -> None:
        self._admin = admin
        self._protection = protection

    async def read(self, topic: TopicName) -> NameState:
        """What exists under the plain name. Raises NamespaceMissing."""
        name = topic.persistent
        # Asked first: in a missing namespace the properties call only misses the topic (measured).
        partitions = await self._admin.topics.partitions(name)
        if partitions is None:
            return NameState(exists=False)
        try:
            properties = await self._admin.topics.properties(name)
            claim, source = claim_of(properties), migrated_from_of(properties)
            if partitions:
                return NameState(exists=True, partitions=partitions, claim=claim, migrated_from=source)
            terminated = is_terminated(await self._admin.topics.internal_stats(name))
        except TopicMissing:
            return NameState(exists=False)
        return NameState(exists=True, claim=claim, terminated=terminated, migrated_from=source)

    async def take(self, topic: TopicName, claim: Claim, properties: Mapping[str, str] | None) -> None:
        """Create the base-name topic with the claim, seal and protect it.

        A broker answers "created" to several callers at once (measured: up to all of 8), but keeps the properties
        of one: whose claim reads back has won. Nothing is sealed before that. Raises NameTaken, NamespaceMissing.
        """
        name = topic.persistent
        await self._admin.topics.create(name, claim_properties(claim, properties))
        state = await self.read(topic)
        if not state.exists:
            raise BackendUnavailable(f"claim {name}: the topic vanished meanwhile")
        if state.claim is None and state.partitions:
            raise NameTaken(f"claim {name}: a topic with {state.partitions} partitions has that name")
        if state.claim is None:
            raise NameTaken(f"claim {name}: a topic without a claim has that name")
        if state.claim != claim:
            raise NameTaken(f"claim {name}: {_owner(state.claim)} has claimed that name")
        await self._seal_and_protect(topic, claim)

    async def rewrite(
        self, topic: TopicName, claim: Claim, properties: Mapping[str, str] | None, *, seal: bool
    ) -> None:
        """Replace the claim, bring the user's properties to `properties` unless None, seal and protect.

        Raises TopicMissing, NamespaceMissing.
        """
        name = topic.persistent
        # Read first: some brokers never answer a write of properties to a missing topic.
        found = await self._admin.topics.properties(name)
        kept = user_properties(found) if properties is None else properties
        wanted = claim_properties(claim, kept)
        changed = {key: value for key, value in wanted.items() if found.get(key) != value}
        if changed:
            await self._admin.topics.merge_properties(name, changed)
        for key in sorted(user_properties(found).keys() - wanted.keys()):
            await self._admin.topics.remove_property(name, key)
        if seal:
            await self._seal_and_protect(topic, claim)
        else:
            await self._protection.ensure(name)

    async def take_over(self, topic: TopicName, claim: Claim, source: MigratedFrom) -> None:
        """Claim an ordinary topic that is being migrated, and make it ready for that; it is not sealed.

        Raises NameTaken for another's claim, TopicMissing, NamespaceMissing.
        """
        name = topic.persistent
        found = await self._admin.topics.properties(name)
        other = claim_of(found)
        if other is not None and other.resource_uid != claim.resource_uid and not other.released:
            raise NameTaken(f"claim {name}: {_owner(other)} has claimed that name")
        wanted = migration_properties(claim, source)
        if any(found.get(key) != value for key, value in wanted.items()):
            await self._admin.topics.merge_properties(name, wanted)
        # Brokers make the policy of a partitioned topic count for all its partitions.
        await self._protection.ensure(name)
        if source.partitions:
            await self._admin.topics.create_missing_partitions(name)
        if claim_of(await self._admin.topics.properties(name)) != claim:
            raise NameTaken(f"claim {name}: somebody else has claimed that name at the same moment")

    async def let_go(self, topic: TopicName) -> None:
        """Take claim and marks off an ordinary topic again; quiet when it is gone."""
        try:
            found = await self._admin.topics.properties(topic.persistent)
            for key in (CLAIM_KEY, MIGRATED_KEY):
                if key in found:
                    await self._admin.topics.remove_property(topic.persistent, key)
            await self._protection.lift(topic.persistent)
        except TopicMissing:
            return

    async def delete(self, topic: TopicName, *, force: bool) -> None:
        """Delete the base-name topic, with all its partitions; quiet when it is gone. Raises ClientsAttached."""
        name = topic.persistent
        if await self._admin.topics.partitions(name):
            await self._admin.topics.delete_partitions(name, force=force)
        else:
            await self._admin.topics.delete(name, force=force)

    async def user_properties(self, topic: TopicName) -> dict[str, str]:
        """The user's properties stored with the claim. Raises TopicMissing."""
        return user_properties(await self._admin.topics.properties(topic.persistent))

    async def _seal_and_protect(self, topic: TopicName, claim: Claim) -> None:
        name = topic.persistent
        try:
            await self._protection.ensure(name)
            for _ in range(_SEAL_ATTEMPTS):
                state = await self.read(topic)
                if state.claim != claim:
                    raise BackendUnavailable(f"claim {name}: it does not read back as ours")
                if state.terminated:
                    return
                if state.partitions:
                    await self._admin.topics.terminate_partitions(name)
                    return
                await self._admin.topics.terminate(name)
        except TopicMissing as error:
            raise BackendUnavailable(f"claim {name}: it vanished meanwhile ({error})") from None
        raise BackendUnavailable(f"claim {name}: it does not stay sealed")


def _owner(claim: Claim) -> str:
    released = "released " if claim.released else ""
    return (
        f"{released}ScalableTopic {claim.resource_namespace}/{claim.resource_name} "
        f"of Kubernetes cluster {claim.kubernetes_uid}"
    )
