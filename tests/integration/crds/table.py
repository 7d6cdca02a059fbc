"""The table of rules of all kinds."""

from __future__ import annotations

from tests.integration.crds import connection_rows, operation_rows, policy_rows, subscription_rows, topic_rows
from tests.integration.crds.rows import Row

ROWS: tuple[Row, ...] = (
    *connection_rows.ROWS,
    *topic_rows.ROWS,
    *operation_rows.ROWS,
    *policy_rows.ROWS,
    *subscription_rows.ROWS,
)
