"""Rules for the name of a scalable topic, in words a user understands (DESIGN §4, R20).

The kernel's `TopicName` is the judge; these rules refuse when the object is applied what it would refuse
later.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from scalable_topics_operator.api.schema_extra import SchemaExtra, rule, rules

_THREE_PARTS = "^([^/]*://)?[^/]+/[^/]+/[^/]+"
_ENTITY = "[-=:.A-Za-z0-9_]+"

TopicText = Annotated[
    str,
    Field(max_length=512),
    SchemaExtra(
        rules(
            rule("self.size() > 0", "must name a topic, for example topic://acme/shop/orders"),
            rule(
                "!self.startsWith('non-persistent://')",
                "non-persistent topics cannot be scalable topics: segments must keep their messages",
            ),
            rule(
                "!self.contains('://') || self.matches('^(topic|persistent|non-persistent)://')",
                "the scheme must be topic:// or persistent://, or be left out",
            ),
            rule(
                r"!self.matches('[\\p{Z}\\p{C}]')",
                "must not contain blanks, other white space or control characters",
            ),
            rule(
                f"self.size() == 0 || self.matches('{_THREE_PARTS}$') || self.matches('^[^/]+$')",
                "must be tenant/namespace/name, with or without topic:// or persistent:// before it, "
                "or a name alone; the name must not contain a slash",
            ),
            rule(
                f"!self.matches('{_THREE_PARTS}$') || self.matches('^([^/]*://)?{_ENTITY}/{_ENTITY}/')",
                "tenant and namespace may hold only letters, digits and the characters - = : . _",
            ),
            rule(
                "bytes(self.substring(self.lastIndexOf('/') + 1)).size() <= 200",
                "the name is too long: at most 200 bytes, so that the names of its segments fit",
            ),
            rule(
                "!self.matches('-partition-[0-9]+$')",
                "ends in -partition-N, which names one partition; name the topic itself",
            ),
            rule("!self.endsWith('-layout')", "names that end in -layout are reserved for layout topics"),
            rule(
                "!self.matches('-segment-[0-9a-f]{4}-[0-9a-f]{4}-[0-9]+$')",
                "names that end in -segment-hhhh-hhhh-N are reserved for segments",
            ),
        )
    ),
]
