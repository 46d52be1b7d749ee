"""What the pages of Dagster show about a dataset: of the asset, of each version, of each check.

A private dataset shows figures of the whole, never text of a row: no preview, no facts of a check,
and only reasons that its declaration spells out. The card of `deduplicated` is in `card_page`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import dagster as dg

from factory.control import card_page, pictures, reasons
from factory.control.card import card_of, shown_step
from factory.control.previews import preview, removed_pairs
from factory.data import Dataset, Dedup, layout, licence
from factory.data.steps import Step
from factory.errors import DeclarationError
from factory.keys import Key, PrivateKey
from factory.units import size

if TYPE_CHECKING:
    from factory.namespace import CheckRecord, Version

HIDDEN_REASON = "(a reason with text of its own; in the table `rejected`)"

_DEFAULT_OWNERS = {"public": "team:data", "private": "team:data-governance"}
_SOURCE_KINDS = {
    "PythonPackage": "python",
    "Git": "git",
    "Http": "http",
    "HuggingFace": "huggingface",
    "S3": "s3",
    "Fsspec": "file",
    "LocalFiles": "file",
    "PartnerDrop": "file",
}


def declared_metadata(step: Step) -> dict[str, Any]:
    """Metadata of the asset itself, whatever is materialized."""
    dataset = step.dataset
    return {
        "dataset": dataset.key.path,
        "licence": dataset.license,
        "classification": dataset.key.classification,
        "source": type(dataset.source).__name__,
        "role": dataset.role,
        **_made_of(dataset),
    }


def _made_of(dataset: Dataset) -> dict[str, str]:
    """How it is deduplicated and split; a benchmark is neither."""
    if dataset.role == "benchmark":
        return {}
    return {
        "duplicates": _policy(dataset.deduplicate),
        "split shares": ", ".join(f"{name} {share:g}" for name, share in dataset.split.items()),
    }


def tags(step: Step) -> dict[str, str]:
    """Tags to filter the graph by; the licence as a slug, since a tag allows few characters."""
    dataset = step.dataset
    return {
        **dataset.tags,
        "classification": dataset.key.classification,
        "licence": slug(dataset.license),
        "role": dataset.role,
        "step": step.kind,
        **{slug(term): "" for term in licence.terms(dataset.license)},
    }


def kinds(step: Step) -> set[str]:
    """What the asset's node in the graph shows as icons."""
    match step.kind:
        case "raw":
            return {_SOURCE_KINDS.get(type(step.dataset.source).__name__, "jsonl")}
        case "energon":
            return {"webdataset"}
        case _:
            return {"parquet"}


def owners(step: Step) -> list[str]:
    """Teams, never persons.

    Raises:
        DeclarationError: an owner is not written `team:name`.
    """
    dataset = step.dataset
    for owner in dataset.owners:
        if not owner.startswith("team:"):
            raise DeclarationError(
                f"{dataset.key}: owner {owner!r} is not a team. Write team:name."
            )
    return list(dataset.owners) or [_DEFAULT_OWNERS[dataset.key.classification]]


def slug(text: str) -> str:
    """Text as a tag value allows it."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.")[:63]


def made_metadata(
    step: Step, version: "Version", *, reused: bool, inputs: "Mapping[Key, Version]"
) -> dict[str, Any]:
    """Metadata of one materialization."""
    facts: Mapping[str, Any] = version.manifest.facts
    shown = _card(step, version, inputs) if step.kind == shown_step(step.dataset) else {}
    shown |= plain_metadata(version) | {"reused": reused}
    if "rejected" in facts:
        shown["rejected rows"] = rejected_table(step, facts)
    if "duplicates" in facts:
        shown["duplicates removed"] = duplicates_table(facts)
    if "identifiers" in facts:
        shown |= scan_metadata(facts["identifiers"])
    if inputs:
        shown["read"] = dg.MetadataValue.md(
            "\n".join(f"- `{key}` @ `{read.id}`" for key, read in inputs.items())
        )
    if not isinstance(step.key, PrivateKey) and "card" not in shown:
        shown["preview"] = dg.MetadataValue.md(preview(step, version, inputs))
    return shown


def _card(step: Step, version: "Version", inputs: "Mapping[Key, Version]") -> dict[str, Any]:
    """The card and its figures; with texts and images where the dataset is public."""
    cleaned = version if step.kind == "clean" else inputs[step.inputs[0]]
    card = card_of(step.dataset, version, cleaned)
    figures = card.figures()
    if isinstance(step.key, PrivateKey):
        return {"card": dg.MetadataValue.md(card_page.page(card)), **figures}
    sheet = pictures.sheet(version.path / layout.IMAGES)
    page = card_page.page(card, pictures=sheet, samples=preview(step, version, inputs))
    shown = {"card": dg.MetadataValue.md(page), **figures}
    if card.duplicates:
        shown["removed pairs"] = dg.MetadataValue.md(removed_pairs(step, version, inputs))
    return shown


def _licences(version: "Version") -> str:
    """Licences that rows state; of a private dataset only how many: the words are a row's own."""
    stated = version.manifest.licenses
    if isinstance(version.key, PrivateKey):
        return f"{len(stated)} in the manifest"
    return ", ".join(stated) or "none stated"


def plain_metadata(version: "Version") -> dict[str, Any]:
    """What the manifest alone says of a version."""
    manifest = version.manifest
    shown: dict[str, Any] = {
        "version": version.id,
        "directory": dg.MetadataValue.path(str(version.path)),
        "licences": _licences(version),
        "files": len(manifest.files),
        "size": size(sum(entry.size for entry in manifest.files.values())),
    }
    if manifest.rows is not None:
        shown["dagster/row_count"] = manifest.rows
    if manifest.columns:
        shown["dagster/column_schema"] = dg.TableSchema(
            columns=[dg.TableColumn(name, kind) for name, kind in manifest.columns.items()]
        )
    if manifest.limit is not None:
        shown["limited to rows"] = manifest.limit
        shown["LIMITED"] = "a quick look: it never becomes current, and no run trains on it"
    if manifest.partial:
        shown["PARTIAL"] = "made from a mirror that holds only some of the source"
    return shown


def check_metadata(
    record: "CheckRecord", version: "Version", *, confidential: bool
) -> dict[str, Any]:
    """Metadata of one check result; of private data none of the facts, whose names may be rows.

    Figures are single values, nested ones too, because Dagster plots those over the history of a
    check; the form tells in it where the check itself was changed.
    """
    manifest = version.manifest
    shown: dict[str, Any] = {"version": version.id, "form of the check": record.form}
    if manifest.rows is not None:
        shown["rows of the version"] = manifest.rows
    if manifest.limit is not None:
        shown["limited to rows"] = manifest.limit
    return shown if confidential else dict(_figures(record.facts)) | shown


def _figures(facts: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in facts.items():
        if isinstance(value, dict):
            inner: dict[str, Any] = value
            yield from _figures(inner, f"{above}{name}: ")
        elif value is not None:
            yield f"{above}{name}", value


def scan_metadata(found: Any) -> dict[str, Any]:
    """What the scan of a delivery counted. Where it found it is beside the version's files."""
    return {
        "rows scanned": found["rows"],
        "rows left in the drop zone": found["rows_taken_out"],
        "files left in the drop zone": found["files_left_out"],
        "identifiers found": dg.TableMetadataValue(
            records=[
                dg.TableRecord({"kind": kind, "found": count})
                for kind, count in found["found"].items()
            ],
            schema=dg.TableSchema(
                columns=[dg.TableColumn("kind", "string"), dg.TableColumn("found", "int")]
            ),
        ),
    }


def duplicates_table(facts: Mapping[str, Any]) -> dg.TableMetadataValue:
    """Cleaned samples: how many stayed, and how many went, by how they are like one that stayed."""
    duplicates: dict[str, int] = facts["duplicates"]
    total = facts["clean_rows"]
    counts = {"kept": total - sum(duplicates.values()), **duplicates}
    return _shares_table("kind", counts, total)


def rejected_table(step: Step, facts: Mapping[str, Any]) -> dg.TableMetadataValue:
    """Rows that were read and not kept, counted by reason."""
    counts = reasons.shown(
        facts["rejected"],
        step.dataset.declared_in,
        confidential=isinstance(step.key, PrivateKey),
    )
    return _shares_table("reason", counts, facts["rows_read"])


def _shares_table(what: str, counts: Mapping[str, int], total: int) -> dg.TableMetadataValue:
    return dg.TableMetadataValue(
        records=[
            dg.TableRecord({what: name, "rows": count, "share": f"{count / max(total, 1):.1%}"})
            for name, count in counts.items()
        ],
        schema=dg.TableSchema(
            columns=[
                dg.TableColumn(what, "string"),
                dg.TableColumn("rows", "int"),
                dg.TableColumn("share", "string"),
            ]
        ),
    )


def _policy(policy: Dedup | None) -> str:
    if policy is None:
        return "kept: deduplication is declared off"
    return f"removed at a similarity of {policy.threshold:g} and above"
