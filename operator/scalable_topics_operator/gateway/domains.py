"""In which domain a topic is asked for: as a scalable one, or as whatever it is by now (pip-475). Pure."""

from __future__ import annotations

from scalable_topics_operator.gateway.parameters import choice
from scalable_topics_operator.gateway.refusal import Refusal

SCALABLE, RESOLVED, _REFUSED = "topic", "persistent", "non-persistent"

DOMAIN = choice(
    "domain",
    "`topic`: a scalable topic; `persistent`: that of the name, or else the ordinary topic, as the layout that models "
    "it; topics of `non-persistent` are refused",
    (SCALABLE, RESOLVED, _REFUSED),
    SCALABLE,
)


def is_resolved(domain: str | None) -> bool:
    """Whether an ordinary topic will do, too. Raises Refusal: 400 for what is never kept."""
    if domain == _REFUSED:
        raise Refusal(400, "non-persistent topics cannot be scalable; ask for topic or persistent")
    if domain not in (None, SCALABLE, RESOLVED):
        raise Refusal(400, f"?domain= is {SCALABLE} or {RESOLVED}")
    return domain == RESOLVED
