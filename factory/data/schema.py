"""The Parquet schema of samples and of rejected rows.

Common columns, and one nullable struct per kind of content: a new kind adds a struct and leaves
the other columns as they are. Reading and writing is in `table`.
"""

import pyarrow as pa


def _struct(**fields: pa.DataType) -> pa.StructType:
    return pa.struct([pa.field(name, kind) for name, kind in fields.items()])


_TEXT = pa.string()
_SECTION = _struct(heading=_TEXT, text=_TEXT)
_PARTS = pa.list_(_struct(text=_TEXT, image=_TEXT))
"""Of the two fields of a part one is null."""

_CALL = _struct(id=_TEXT, name=_TEXT, arguments=_TEXT)
_MESSAGE = _struct(
    role=_TEXT,
    parts=_PARTS,
    tool_calls=pa.list_(_CALL),
    tool_call_id=_TEXT,
    name=_TEXT,
    trained=pa.bool_(),
)

SAMPLES = pa.schema(
    [
        pa.field("id", _TEXT, nullable=False),
        pa.field("group", _TEXT, nullable=False),
        pa.field("kind", _TEXT, nullable=False),
        pa.field("source", _TEXT, nullable=False),
        pa.field("license", _TEXT, nullable=False),
        pa.field("meta", pa.map_(_TEXT, _TEXT), nullable=False),
        pa.field("document", _struct(title=_TEXT, sections=pa.list_(_SECTION))),
        pa.field(
            "question",
            _struct(question=_TEXT, options=pa.list_(_TEXT), answer=_TEXT, explanation=_TEXT),
        ),
        pa.field("conversation", _struct(tools=_TEXT, messages=pa.list_(_MESSAGE))),
        pa.field("image_text", _struct(parts=_PARTS)),
    ]
)

REJECTED = pa.schema(
    [
        pa.field("file", _TEXT, nullable=False),
        pa.field("id", _TEXT, nullable=False),
        pa.field("reason", _TEXT, nullable=False),
        pa.field("excerpt", _TEXT),
    ]
)
