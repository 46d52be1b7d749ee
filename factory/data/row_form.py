"""What may be written in `Rows(...)`: the type of each field, and the values that there are."""

from typing import TYPE_CHECKING, Any, Literal, get_args

from factory.data.declared import is_list, is_number
from factory.errors import DeclarationError

if TYPE_CHECKING:
    from factory.data.pattern import Rows

type Format = Literal[
    "xml", "jsonl", "json", "csv", "tsv", "parquet", "text", "content", "frame", "tile"
]

FORMATS: tuple[str, ...] = get_args(Format.__value__)

_TYPES: dict[str, Any] = {
    "pattern": str,
    "format": str | None,
    "encoding": str | None,
    "min_confidence": int | float | None,
    "delimiter": str | None,
    "quote": str | None,
    "header": bool,
    "columns": tuple | list | None,
    "ragged": str,
    "keyed": str | None,
    "items": str | None,
    "max_ratio": int | float,
    "beside": tuple | list,
}


def check_form(rows: "Rows") -> None:
    """Refuse what cannot be meant.

    Raises:
        DeclarationError: a field has a value of another type, or one that there is not.
    """
    _check_types(rows)
    if rows.ragged not in ("refuse", "reject") or rows.format not in (None, *FORMATS):
        raise DeclarationError(
            f"Rows({rows.pattern!r}): format is {rows.format!r} and ragged is {rows.ragged!r}. "
            f"Write one of {', '.join(FORMATS)} or leave the format out; 'refuse' or 'reject'."
        )
    wrong = {
        "encoding": rows.encoding is not None and not _is_encoding(rows.encoding),
        "delimiter": rows.delimiter is not None and len(rows.delimiter) != 1,
        "quote": rows.quote is not None and len(rows.quote) != 1,
        "columns": rows.columns is not None and len(set(rows.columns)) < len(rows.columns),
        "min_confidence": rows.min_confidence is not None and not 0 < rows.min_confidence <= 1,
        "max_ratio": not (is_number(rows.max_ratio) and rows.max_ratio >= 1),
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            raise DeclarationError(
                f"Rows({rows.pattern!r}): {name} is {getattr(rows, name)!r}. Write an encoding "
                "that Python knows, one character as delimiter and quote, different column names, "
                "a confidence above 0 and up to 1, a ratio from 1."
            )
    if not rows.header and rows.columns is None:
        raise DeclarationError(
            f"Rows({rows.pattern!r}): header=False leaves the columns without names. "
            "Write columns=(...) as well."
        )


def check_markup(rows: "Rows") -> None:
    """Refuse an encoding in which no XML can be read.

    Raises:
        DeclarationError: the parser of XML does not know it.
    """
    if rows.encoding is None:
        return
    from factory.data.formats.markup import parser_encoding  # which loads lxml

    if parser_encoding(rows.encoding) is None:
        raise DeclarationError(
            f"Rows({rows.pattern!r}): encoding is {rows.encoding!r}, in which no XML can be read. "
            "Leave it out, since a document says its own; or write a name that XML has, as 'utf-8'."
        )


def _check_types(rows: "Rows") -> None:
    for name, type_ in _TYPES.items():
        value: object = getattr(rows, name)
        if not isinstance(value, type_) or (isinstance(value, bool) and name != "header"):
            raise DeclarationError(
                f"Rows({rows.pattern!r}): {name} is {value!r}. Write {_named(type_)}, or leave it "
                "out; docs/formats.md has the fields."
            )
    lists = (("columns", rows.columns or ()), ("beside", rows.beside))
    for name, texts in lists:
        if not is_list(texts, lambda one: isinstance(one, str)):
            raise DeclarationError(
                f"Rows({rows.pattern!r}): {name} is {texts!r}. Write texts, ('a', 'b')."
            )


def _is_encoding(name: str) -> bool:
    try:
        b"a".decode(name)
    except LookupError:
        return False
    except UnicodeError:  # a letter alone is no text in it
        return True
    return True


def _named(type_: Any) -> str:
    """A type in words."""
    kinds = get_args(type_) or (type_,)
    words = {
        str: "a text",
        bool: "True or False",
        int: "a number",
        tuple: "a tuple of texts",
        type(None): "None",
    }
    return " or ".join(words[one] for one in kinds if one in words)
