"""Small tables made by the driver."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def local_frame(spark: SparkSession, rows: Iterable[tuple[Any, ...]], schema: str) -> DataFrame:
    """A table of rows, handed over as one piece: through Python's workers each would take a second.

    Args:
        spark: the session.
        rows: in the order of the schema.
        schema: in Spark's notation.
    """
    types = StructType.fromDDL(schema)
    assert isinstance(types, StructType)
    names = types.fieldNames()
    records = [dict(zip(names, row, strict=True)) for row in rows]
    table: Any = pa.Table.from_pylist(records, to_arrow_schema(types, timezone="UTC"))
    return spark.createDataFrame(table, types)
