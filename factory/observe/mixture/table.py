"""Table: the lines of a ledger as a Parquet file, one row for each step and dataset."""

import io
from collections.abc import Sequence

from factory.observe.mixture.totals import COLUMNS
from factory.reports import MixtureLine


def parquet(lines: Sequence[MixtureLine]) -> bytes:
    """Sums up to each line's step; what was dropped as a list of reason, samples and tokens."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    dropped = pa.list_(
        pa.struct([("reason", pa.string()), ("samples", pa.int64()), ("tokens", pa.int64())])
    )
    schema = pa.schema(
        [
            ("step", pa.int64()),
            ("source", pa.string()),
            *((name, pa.int64()) for name in COLUMNS),
            ("dropped", dropped),
        ]
    )
    rows = [
        {
            "step": line.step,
            **source.model_dump(exclude={"dropped"}),
            "dropped": [
                {"reason": reason, "samples": samples, "tokens": tokens}
                for reason, (samples, tokens) in source.dropped.items()
            ],
        }
        for line in lines
        for source in line.sources
    ]
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), file)
    return file.getvalue()
