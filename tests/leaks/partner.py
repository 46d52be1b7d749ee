"""A partner's deliveries with a canary in every place where a text can be, and their datasets.

    partner.py BASE deliver                 write the deliveries
    partner.py BASE run ENGINE DATASET...   materialize through Dagster, in this process
    partner.py BASE tick                    what the sensor asks for

A process of its own, since it may be killed; what it prints is searched as well. The last line that
it prints says which datasets came to their end.
"""

import gzip
import io
import json
import logging
import os
import signal
import sys
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any

from factory.data import (
    Check,
    CheckResult,
    Dataset,
    Images,
    Kind,
    PartnerDrop,
    Rejected,
    Row,
    Sample,
    Thresholds,
    fhir,
)
from factory.data.chat import openai, tools
from factory.errors import BadRow
from factory.keys import private
from factory.settings import Settings
from tests.deliveries import sign
from tests.leaks.canaries import canary

MAIL = "someone@example.org"
"""A direct identifier; beside it a canary, so that its row is searched for."""

KILL = "TEST_KILL"
"""Names a file. A row that asks for it kills its process where the file is missing."""

WAIT = "TEST_WAIT"
"""Names a file. A row that asks for it makes the file where it is missing, and waits."""

ROWS = 60
WORDS = "was seen for follow up and given aspirin daily until the pain had gone away in week"


def told(row: Row, text: str) -> None:
    """Say a row in every way, as a `clean` under development does."""
    sys.stdout.write(f"{text}\n")
    logging.getLogger("partner").warning("cleaning %s", text)
    os.write(2, text.encode())


def talk(row: Row) -> Sample | Rejected:
    """A conversation; some rows are rejected, some raise with what they hold."""
    first = row.text("first")
    told(row, first)
    match row.text("outcome"):
        case "reject":
            return Rejected(f"rejected: {first}")
        case "raise":
            raise ValueError(first)
        case "bad":
            raise BadRow(f"bad: {first}")
        case "kill" if not Path(os.environ[KILL]).exists():
            Path(os.environ[KILL]).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        case "wait" if not Path(os.environ[WAIT]).exists():
            Path(os.environ[WAIT]).touch()
            time.sleep(600)
        case _:
            pass
    return Sample.conversation(
        id=row.text("id"),
        messages=openai.messages(row.record),
        tools=tools(row.record),
        group=row.text("patient"),
        meta={"ward": row.text("ward")},
    )


def plain(row: Row) -> Sample:
    """Any record or text as a document."""
    text = row.plain if row.plain is not None else json.dumps(dict(row.record), default=str)
    told(row, text)
    return Sample.document(id=row.id, title=text[:40], sections=[("", text)])


def resource(row: Row) -> Sample:
    """A FHIR resource as a document."""
    return fhir.document(row.record, id=row.id)


def scan(row: Row) -> Sample:
    """An image with what its header says."""
    caption = " ".join(f"{name}: {value}" for name, value in sorted(row.image.meta.items()))
    told(row, caption)
    return Sample.image_text(id=row.id, parts=[row.image, f"{canary('caption')} {caption}"])


def telling(_: Path) -> CheckResult:
    """A check that says rows in its summary, and in names and values of its facts."""
    word = canary("check")
    return CheckResult(True, f"saw {word}", {word: 1, "text": word, "nested": {word: 2}})


def raising(_: Path) -> CheckResult:
    """A check that fails with a row."""
    raise ValueError(canary("raising-check"))


def _dataset(name: str, rows: str, clean: Any, **changes: Any) -> Dataset:
    allowed = changes.pop("thresholds", Thresholds(direct=5))
    return Dataset(
        key=private(f"text/{name}"),
        license="LicenseRef-test",
        source=PartnerDrop(folder=name, rows=rows, thresholds=allowed),
        clean=clean,
        split={"train": 0.8, "validation": 0.2},
        description="A delivery.",
        **changes,
    )


TALKS: tuple[str, Any] = ("**/*.jsonl", talk)
SCANS: tuple[str, Any] = ("*.dcm//frame", scan)
ONE_PRIVATE = Thresholds(allowed={Kind.PRIVATE_ELEMENT: 1})

DATASETS = {
    name: _dataset(name, *given, **changes)
    for name, given, changes in (
        (
            "talks",
            TALKS,
            {
                "max_errors": 10,
                "checks": [
                    Check("telling", telling, step="split"),
                    Check("raising", raising, step="split", blocking=False),
                ],
            },
        ),
        ("failing", TALKS, {}),
        ("killed", TALKS, {"max_errors": 10}),
        ("talks_ray", TALKS, {"max_errors": 10}),
        ("failing_ray", TALKS, {}),
        ("killed_ray", TALKS, {"max_errors": 10}),
        ("stopped_ray", TALKS, {"max_errors": 10}),
        ("tables", ("*.csv", plain), {}),
        ("packed", ("*.zip!**/*.csv", plain), {}),
        ("columns", ("*.parquet", plain), {}),
        ("texts", ("*.txt.gz", plain), {}),
        ("patients", ("*.jsonl", resource), {}),
        ("scans", SCANS, {"images": Images()}),
        ("refused_scans", SCANS, {"images": Images()}),
        ("allowed_scans", SCANS, {"images": Images(), "thresholds": ONE_PRIVATE}),
        ("allowed_scans_ray", SCANS, {"images": Images(), "thresholds": ONE_PRIVATE}),
        ("photographs", ("*.png", scan), {"images": Images()}),
        ("blocked", ("*.jsonl", talk), {"thresholds": Thresholds()}),
        ("damaged", ("*.jsonl", talk), {"thresholds": Thresholds()}),
    )
}


WHOLE = ("talks", "talks_ray")
"""Brought to their last step. Of the others only these are made:"""

FIRST = ("raw", "clean", "deduplicated")


def row(number: int, outcome: str = "keep", extra: str = "") -> dict[str, Any]:
    """A conversation with a canary in each of its parts."""
    arguments = json.dumps({"drug": f"{canary('arguments')} {number}"})
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": arguments}}
    function = {"name": "find", "description": canary("tools"), "parameters": {"type": "object"}}
    return {
        "id": f"{canary('id')}-{number if number != 7 else 'seven'}",
        "patient": f"{canary('group')}-{number % 20}",
        "ward": canary("meta"),
        "outcome": outcome,
        "first": f"{canary(outcome)} {number} {extra}",
        "messages": [
            {"role": "system", "content": canary("system")},
            {"role": "user", "content": f"{canary(outcome)} {number % 50} {WORDS} {extra}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": canary("result")},
            {"role": "assistant", "content": f"{canary('answer')} {WORDS} {number % 50}"},
        ],
        "tools": [{"type": "function", "function": function}],
    }


def lines(rows: list[dict[str, Any]]) -> bytes:
    """As the partner's program writes it."""
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in rows).encode()


def talks(last: str) -> bytes:
    """Rows of every outcome."""
    rows = [row(number) for number in range(ROWS)]
    rows += [row(100 + n, "reject") for n in range(3)] + [row(200 + n, "bad") for n in range(3)]
    rows += [row(300, "raise"), row(301, extra=f"{canary('identifier')} {MAIL}"), row(400, last)]
    return lines(rows)


def photograph(number: int) -> bytes:
    """A PNG with text chunks and EXIF."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_text("Comment", canary("png-text"))
    info.add_text("Compressed", canary("png-compressed"), zip=True)
    info.add_itxt("International", canary("png-international"), zip=True)
    exif = Image.Exif()
    exif[0x010E] = canary("exif")
    file = io.BytesIO()
    Image.new("RGB", (40, 30), (number, 9, 9)).save(file, "PNG", pnginfo=info, exif=exif)
    return file.getvalue()


def header(number: int, *, private_tag: bool = False, **elements: Any) -> bytes:
    """A DICOM image with words in its header."""
    import numpy as np

    from tests.data.images.dicom_files import dicom, saved

    given = {"SpecificCharacterSet": "ISO_IR 192", "SOPInstanceUID": None} | elements
    pixels = np.arange(number, number + 12, dtype=np.uint8).reshape(3, 4) % 7
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they say what is odd about the values
        data = dicom(pixels, **given)
        data.StudyDescription = canary("study")
        data.ImageComments = canary("comments")
        data.BodyPartExamined = canary("bodypart")[:16]
        if private_tag:
            block = data.private_block(0x0029, "PARTNER", create=True)
            block.add_new(0x01, "LO", canary("private-tag"))
        return saved(data)


def tables() -> dict[str, bytes]:
    """The deliveries of tables and texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = "id,text\n" + "".join(f'{n},"{canary("csv")} {WORDS} {n}"\n' for n in range(20))
    archive, columns = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(f"{canary('member')}/a.csv", text)
        file.writestr("README.txt", canary("zip-readme"))
    rows = [{"id": n, "text": f"{canary('parquet')} {WORDS} {n}"} for n in range(20)]
    pq.write_table(pa.Table.from_pylist(rows), columns)
    return {
        "tables/a.csv": text.encode(),
        "tables/utf16.csv": text.encode("utf-16"),
        "packed/a.zip": archive.getvalue(),
        "columns/a.parquet": columns.getvalue(),
        **{
            f"texts/{n}.txt.gz": gzip.compress(f"{canary('text')} {n} {WORDS}".encode())
            for n in range(6)
        },
    }


def files() -> dict[str, bytes]:
    """Every file of every delivery."""
    patients = [
        {
            "resourceType": "Observation",
            "id": f"o{n}",
            "status": "final",
            "code": {"text": f"{canary('fhir')} {n}"},
            "valueString": WORDS,
        }
        for n in range(20)
    ]
    blocked = lines([row(1), row(2, extra=MAIL)])
    return tables() | {
        f"talks/{canary('file')}/{canary('name')}.jsonl": talks("keep"),
        "talks/README.md": canary("readme").encode(),
        "talks/notes.csv": f"a\n{canary('no-row')}\n".encode(),
        "failing/a.jsonl": talks("keep"),
        "killed/a.jsonl": talks("kill"),
        "talks_ray/a.jsonl": talks("keep"),
        "talks_ray/b.jsonl": talks("keep").replace(b"-id-", b"-id-b-"),
        "failing_ray/a.jsonl": talks("keep"),
        "killed_ray/a.jsonl": talks("kill"),
        "stopped_ray/a.jsonl": talks("wait"),
        "patients/a.jsonl": lines(patients),
        **{f"scans/{n}.dcm": header(n) for n in range(6)},
        **{f"allowed_scans/us-{n}.dcm": header(n, Modality="US") for n in range(6)},
        **{f"allowed_scans_ray/us-{n}.dcm": header(n, Modality="US") for n in range(6)},
        "allowed_scans/private.dcm": header(9, private_tag=True),
        "refused_scans/a.dcm": header(9, Modality="US"),
        **{f"photographs/{n}.png": photograph(n) for n in range(6)},
        f"blocked/{canary('blocked-name')}.jsonl": blocked,
        "damaged/a.jsonl": lines([row(1), row(2)])[:-40],
        "damaged/b.jsonl.gz": gzip.compress(lines([row(n) for n in range(200)]))[:-40],
    }


def deliver(drops: Path) -> None:
    """Put every delivery where its dataset looks for it."""
    for name, data in files().items():
        path = drops / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for folder in sorted(drops.iterdir()):
        listed = sorted(path.name for path in folder.glob("us-*.dcm"))
        sign(folder, burned_in_allowed=listed)


def run(settings: Settings, name: str, engine: str) -> bool:
    """Materialize a dataset and run its checks, as Dagster does."""
    import dagster as dg

    from factory.control.assets import catalog, op_name
    from factory.control.instance import ensure
    from factory.control.lineage import asset_key
    from factory.control.resources import executor, resources
    from factory.data.steps import steps

    own = dg.Definitions(resources=resources(settings), executor=executor(settings))
    job = dg.Definitions.merge(catalog([DATASETS[name]]), own)
    made = [step for step in steps(DATASETS[name]) if name in WHOLE or step.name in FIRST]
    with ensure(settings) as instance:
        result = job.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=instance,
            asset_selection=[asset_key(step.key) for step in made],
            run_config={
                "ops": {
                    op_name(step): {"config": {"engine": engine}}
                    for step in made
                    if step.name != "raw"
                }
            },
            raise_on_error=False,
        )
    return result.success


def tick(settings: Settings) -> None:
    """Print what the sensor asks for, and what it says of the rest."""
    import dagster as dg

    from factory.control.assets import catalog
    from factory.control.deliveries import deliveries_sensor
    from factory.control.instance import ensure
    from factory.control.resources import executor, resources

    sensor = deliveries_sensor(DATASETS.values(), settings)
    watched = dg.Definitions.merge(catalog(DATASETS.values()), dg.Definitions(sensors=[sensor]))
    own = dg.Definitions(resources=resources(settings), executor=executor(settings))
    repository = dg.Definitions.merge(watched, own).get_repository_def()
    with (
        ensure(settings) as instance,
        dg.build_sensor_context(
            instance, repository_def=repository, sensor_name=sensor.name
        ) as context,
    ):
        print(repository.get_sensor_def(sensor.name).evaluate_tick(context))  # noqa: T201


def main() -> None:
    """Do what the command line says."""
    base, command, *more = sys.argv[1:]
    for folder in ("root", "drops"):
        (Path(base) / folder).mkdir(exist_ok=True)
    settings = Settings(
        deployment="laptop",
        root=Path(base, "root"),
        state=Path(base, "state"),
        dagster_home=Path(base, "dagster"),
        mirrors=None,
        drops=Path(base, "drops"),
        image=None,
    )
    match command:
        case "deliver":
            deliver(Path(base, "drops"))
        case "tick":
            tick(settings)
        case _:
            engine, *names = more
            done = [name for name in names if run(settings, name, engine)]
            print(" ".join(["done", *done]), flush=True)  # noqa: T201  read by the test


if __name__ == "__main__":
    main()
