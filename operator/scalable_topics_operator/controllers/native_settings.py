"""What a topic's spec and its policies set on brokers that own its layout, and what they cannot be told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scalable_topics_operator.controllers.engine import Engine, engine_of
from scalable_topics_operator.controllers.policy_book import PolicyBook
from scalable_topics_operator.controllers.topic_status import recorded_managed
from scalable_topics_operator.controllers.topic_work import NativeWork
from scalable_topics_operator.operations.drift import Managed
from scalable_topics_operator.operations.errors import BackendRefused
from scalable_topics_operator.operations.native.create import unsupported
from scalable_topics_operator.operations.native.override import (
    OFF,
    is_same,
    not_applied,
    not_in_force,
    override_of,
)
from scalable_topics_operator.operations.native.protocols import NativeLook, NativeTopic

AUTO_SCALE_POLICY = "autoScale"
"""Name under which the status keeps that the topic's auto-scale policy at the brokers is ours."""


class NativeSettings:
    """Sets and checks them.

    Args:
        policies: say what applies.
    """

    def __init__(self, policies: PolicyBook) -> None:
        self._policies = policies

    async def settle_policy(self, work: NativeWork, found: NativeTopic) -> None:
        """Bring the auto-scale policy that is stored with the topic to what is wanted.

        Where nothing is wanted only what the operator has stored is taken away, not what somebody else has. What the
        brokers refuse is told as the condition AutoScale. Raises BackendUnavailable.
        """
        effective = self._policies.effective(work.key, work.store.body)
        if effective.config is None and not self._is_off(work):
            # Told as the condition AutoScale; what is in force stays.
            return
        wanted = self._wanted(work)
        is_ours = AUTO_SCALE_POLICY in recorded_managed(work.store.status).policies
        if is_same(found.override, wanted) or (wanted is None and not is_ours):
            return
        try:
            await work.ctx.backend.set_override(work.topic, wanted)
        except BackendRefused as refusal:
            self._hinder(work, str(refusal))
            return
        work.memory.clients_due = 0.0

    async def check(self, work: NativeWork, found: NativeTopic, look: NativeLook) -> None:
        """Grant what is to be granted, and tell what brokers do not do. Raises BackendError."""
        await self._settle_permissions(work)
        wanted = self._wanted(work)
        stored = wanted if is_same(found.override, wanted) else None
        if engine_of(work.spec, work.store.facts.backend) is Engine.BROKER:
            self._hinder(work, not_in_force(look.policy, stored))
        else:
            self._hinder(work, "")
        status = {key: value for key, value in work.store.status.items() if key != "reports"}
        reports = [{"reason": reason, "message": message} for reason, message in self._reports(work, found)]
        await work.store.write_status({**status, "reports": reports} if reports else status)

    def managed(self, work: NativeWork) -> Managed:
        """What may be set on the brokers for the spec now."""
        policies = frozenset({AUTO_SCALE_POLICY}) if self._wanted(work) is not None else frozenset[str]()
        return Managed(policies, work.ctx.intent.permissions)

    def _is_off(self, work: NativeWork) -> bool:
        return (
            work.spec.segments.desired is not None or engine_of(work.spec, work.store.facts.backend) is Engine.OPERATOR
        )

    def _wanted(self, work: NativeWork) -> Mapping[str, Any] | None:
        if self._is_off(work):
            return OFF
        return override_of(self._policies.effective(work.key, work.store.body))

    def _hinder(self, work: NativeWork, why: str) -> None:
        if work.memory.scale.hindrance != why:
            work.memory.scale.hindrance, work.memory.scale.due = why, 0.0

    def _reports(self, work: NativeWork, found: NativeTopic) -> list[tuple[str, str]]:
        reports = []
        if why := unsupported(work.ctx.intent):
            reports.append(("NotApplied", why))
        effective = self._policies.effective(work.key, work.store.body)
        told = not_applied(effective, brokers_decide=not self._is_off(work))
        reports += [("NotApplied", why) for why in told]
        if dict(work.ctx.intent.properties) != dict(found.properties):
            reports.append(
                (
                    "NotApplied",
                    "spec.properties differ from the topic's: the brokers of the Native backend take properties when "
                    "they make a topic and never again",
                )
            )
        return reports

    async def _settle_permissions(self, work: NativeWork) -> None:
        wanted = work.ctx.intent.permissions
        before = recorded_managed(work.store.status)
        overdone = before.overdone(wanted)
        if not wanted and not overdone:
            return
        granted = await work.ctx.backend.permissions(work.topic)
        for role in overdone:
            if role not in wanted and role in granted:
                await work.ctx.backend.revoke(work.topic, role)
        for role, actions in wanted.items():
            has = granted.get(role, frozenset())
            right = actions if role in overdone else has | actions
            if has != right:
                await work.ctx.backend.grant(work.topic, role, right)
