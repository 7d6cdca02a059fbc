"""Every bound, pattern, enum, uniqueness, required field and CEL rule in `crds/` has a row in the table."""

from __future__ import annotations

from tests.integration.crds.schema_walk import demands, fields, holds
from tests.integration.crds.table import ROWS
from tests.support.crds import our_schemas
from tests.unit.api.manifests import SPECS, STATUSES, manifest


def test_every_demand_has_a_row_and_every_row_a_demand() -> None:
    demanded = {demand for kind, schema in our_schemas().items() for demand in demands(kind, schema)}
    shown = {row.demand for row in ROWS}
    assert sorted(map(str, demanded - shown)) == []
    assert sorted(map(str, shown - demanded)) == []


def test_every_field_is_in_an_example() -> None:
    missing = []
    for kind, schema in our_schemas().items():
        examples = [manifest(kind, spec, STATUSES[kind]) for spec in SPECS[kind]]
        missing += [
            f"{kind} {path}" for path in fields(schema) if not any(holds(example, path) for example in examples)
        ]
    assert missing == []
