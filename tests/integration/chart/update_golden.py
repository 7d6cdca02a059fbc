"""Write the golden files anew, to look at what has changed: `python -m tests.integration.chart.update_golden`."""

from __future__ import annotations

from tests.integration.chart.rendering import GOLDEN, SETS, golden_text

if __name__ == "__main__":
    for name in SETS:
        (GOLDEN / f"{name}.yaml").write_text(golden_text(name))
