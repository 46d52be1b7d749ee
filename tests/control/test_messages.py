"""Writer and reader of message chunks, against restarts, crashes and each other."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import dagster as dg
import pytest
from dagster_pipes import PipesMessage

from factory.control.messages import NamespaceMessageReader, messages_name
from factory.control.page import readable
from factory.errors import Superseded
from factory.keys import Classification
from factory.namespace import Namespace, RunDirectory
from factory.reports import MixtureLine, Phase, SourceCounts, StepLine, chunk_name
from factory.training.messages import ChunkChannel, NamespaceMessageWriter

STEP = StepLine(
    step=1, of=3, loss=2.5, grad_norm=None, learning_rate=1e-4, tokens=4096, seconds=0.5
)


def mixture(step: int, **changed: Any) -> MixtureLine:
    """A line of two sources, the second with most tokens."""
    sources = [
        SourceCounts(
            source=f"public/text/s{at}", samples=samples, documents=samples, tokens=tokens,
            loss_tokens=loss, image_tokens=0, truncated=0, distinct=samples,
        )
        for at, (samples, tokens, loss) in enumerate([(3, 100, 100), (1, 300, 60)])
    ]  # fmt: skip
    fields = {"step": step, "of": 9, "slots": 500, "ending": 100, "aligning": 0}
    return MixtureLine(sources=tuple(sources), **fields | changed)


def message(method: str, **params: object) -> PipesMessage:
    return cast(
        "PipesMessage",
        {"__dagster_pipes_version": "0.1", "method": method, "params": params or None},
    )


def numbered(number: int) -> PipesMessage:
    return message("report_custom_message", payload=number)


class Collected(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")


class Handler:
    """Stands where Dagster's handler does, and keeps what it is given."""

    def __init__(self) -> None:
        self.messages: list[PipesMessage] = []

    def handle_message(self, message: PipesMessage) -> None:
        self.messages.append(message)

    @property
    def payloads(self) -> list[Any]:
        return [
            cast("Any", m)["params"]["payload"]
            for m in self.messages
            if m["method"] == "report_custom_message"
        ]


class Reading:
    """A reader with everything it says, as one process would have it."""

    def __init__(
        self, run: RunDirectory, attempt: int = 1, before: Mapping[str, int] | None = None
    ) -> None:
        self.handler, said = Handler(), Collected()
        self.said = said.lines
        log = logging.Logger("reader")
        log.addHandler(said)
        self.reader = NamespaceMessageReader(run, log, attempt=attempt, before=before)
        self._open = self.reader.read_messages(cast("dg.PipesMessageHandler", self.handler))
        self.params = self._open.__enter__()

    def pump(self) -> "Reading":
        self.reader.pump()
        return self


def open_run(root: Path, classification: Classification = "public") -> RunDirectory:
    root.mkdir(exist_ok=True)
    return Namespace(root).open_run(classification, "run-1")


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return open_run(tmp_path / "namespace")


def chunks(run: RunDirectory) -> list[str]:
    return sorted(path.name for path in (run.path / "messages").glob("*.jsonl"))


def write(run: RunDirectory, number: int, *messages: PipesMessage) -> None:
    folder = run.directory("messages")
    (folder / chunk_name(number)).write_text("".join(f"{json.dumps(m)}\n" for m in messages))


def test_what_is_written_is_read_once_and_in_order(run: RunDirectory) -> None:
    reading = Reading(run)
    with NamespaceMessageWriter(interval_seconds=0.01).open(reading.params) as channel:
        for number in range(1_000):
            channel.write_message(numbered(number))
            if number % 100 == 0:
                time.sleep(0.02)
                reading.pump()
    reading.pump().pump()
    assert reading.handler.payloads == list(range(1_000))
    assert len(chunks(run)) > 1
    assert not list((run.path / "messages").glob(".writing-*"))


def test_the_first_message_is_published_at_once(run: RunDirectory) -> None:
    reading = Reading(run)
    with NamespaceMessageWriter(interval_seconds=60).open(reading.params) as channel:
        channel.write_message(message("opened", extras={}))
        deadline = time.monotonic() + 5
        while not reading.pump().reader.opened:
            assert time.monotonic() < deadline
            time.sleep(0.005)


def test_a_reader_that_starts_again_shows_nothing_twice_and_collects_all_results(
    run: RunDirectory,
) -> None:
    write(run, 1, message("opened", extras={}), message("log", message="hello", level="INFO"))
    write(run, 2, message("report_custom_message", payload=STEP.model_dump()))
    first = Reading(run).pump()
    assert len(first.said) == 1
    write(
        run, 3, message("report_custom_message", payload=Phase(name="done", seconds=9).model_dump())
    )
    write(run, 4, message("closed"))
    second = Reading(run).pump()
    assert second.said == ["INFO done (9.0 s)"]
    methods = [m["method"] for m in second.handler.messages]
    assert methods == ["opened", "report_custom_message", "report_custom_message", "closed"]
    assert second.reader.closed
    assert Reading(run).pump().said == []


def said_or_logged(reading: Reading) -> Counter[str]:
    """The lines that a reader has put on the page, and those that it had Dagster put there."""
    logged = [
        str(cast("Any", m)["params"]["message"])
        for m in reading.handler.messages
        if m["method"] == "log"
    ]
    return Counter([*(line.partition(" ")[2] for line in reading.said), *logged])


@pytest.mark.parametrize("shown", range(6))
def test_lines_that_a_killed_reader_showed_before_it_said_so_are_not_shown_again(
    run: RunDirectory, shown: int
) -> None:
    saved = message("report_custom_message", payload=Phase(name="saved", seconds=1).model_dump())
    hello = message("log", message="hello", level="INFO")
    step = message("report_custom_message", payload=STEP.model_dump())
    write(run, 1, saved, hello)
    on_page = said_or_logged(Reading(run).pump())
    assert on_page == Counter(["saved (1.0 s)", "hello"])
    write(run, 2, saved, hello, saved, hello, step)
    lines = ["saved (1.0 s)", "hello", "saved (1.0 s)", "hello", readable(STEP)]
    second = Reading(run, before=on_page + Counter(lines[:shown])).pump()
    assert said_or_logged(second) == Counter(lines[shown:])
    write(run, 3, saved, hello)  # equal lines that are new
    assert said_or_logged(second.pump()) == Counter(lines[shown:] + lines[:2])


def test_a_cursor_line_that_a_crash_cut_off_does_not_count(run: RunDirectory) -> None:
    write(run, 1, message("opened", extras={}))
    (run.directory("messages") / "cursor").write_text("1\n12")
    write(run, 2, message("report_custom_message", payload=STEP.model_dump()))
    assert len(Reading(run).pump().said) == 1


def test_chunks_that_appear_out_of_order_wait_for_the_one_before(run: RunDirectory) -> None:
    reading = Reading(run)
    write(run, 2, numbered(2))
    write(run, 3, numbered(3))
    assert reading.pump().handler.payloads == []
    write(run, 1, numbered(1))
    assert reading.pump().handler.payloads == [1, 2, 3]


def test_a_missing_chunk_is_an_error_at_the_end_and_the_rest_is_read(run: RunDirectory) -> None:
    reading = Reading(run)
    write(run, 1, message("opened", extras={}), numbered(1))
    write(run, 3, numbered(3))
    write(run, 4, message("closed"))
    reading.pump()
    assert reading.handler.payloads == [1]
    reading.reader.finish(0.0)
    assert reading.handler.payloads == [1, 3]
    assert reading.reader.closed
    [said] = reading.said
    assert said.startswith("ERROR")
    assert "000002.jsonl is missing, but 000003.jsonl came after it" in said
    assert len(reading.reader.unreadable) == 1


def test_every_gap_is_named_with_its_numbers(run: RunDirectory) -> None:
    reading = Reading(run)
    for number in (2, 3, 8, 1_000_000, 1_000_001):
        write(run, number, numbered(number))
    reading.reader.finish(0.0)
    assert reading.handler.payloads == [2, 3, 8, 1_000_000, 1_000_001]
    assert [said.partition("jsonl: ")[2] for said in reading.said] == [
        "000001.jsonl is missing, but 000002.jsonl came after it",
        "000004.jsonl to 000007.jsonl are missing, but 000008.jsonl came after it",
        "000009.jsonl to 999999.jsonl are missing, but 1000000.jsonl came after it",
    ]


def test_a_chunk_that_comes_late_is_waited_for(run: RunDirectory) -> None:
    reading = Reading(run)
    write(run, 1, numbered(1))
    write(run, 3, message("closed"))
    late = threading.Timer(0.3, lambda: write(run, 2, numbered(2)))
    late.start()
    reading.reader.finish(30.0)
    late.join()
    assert reading.handler.payloads == [1, 2]
    assert reading.reader.closed
    assert reading.said == []


def test_what_is_missing_is_named_again_and_nothing_else_shown_twice(run: RunDirectory) -> None:
    step = message("report_custom_message", payload=STEP.model_dump())
    write(run, 2, step)
    Reading(run).reader.finish(0.0)
    second = Reading(run)
    second.reader.finish(0.0)
    assert ["missing" in said for said in second.said] == [True]
    assert len(second.handler.payloads) == 1


@pytest.mark.parametrize(
    "name",
    ["0000003.jsonl", "3.jsonl", "00003x.jsonl", "\uff19" * 6 + ".jsonl", "9" * 200 + ".jsonl"],
)
def test_a_name_that_no_writer_gives_is_no_chunk(run: RunDirectory, name: str) -> None:
    write(run, 1, message("closed"))
    (run.path / "messages" / name).write_text(json.dumps(numbered(4711)) + "\n")
    reading = Reading(run)
    reading.reader.finish(0.0)
    assert reading.handler.payloads == []
    assert reading.said == []


def test_a_pod_that_makes_gaps_without_end_gets_few_lines(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("factory.control.chunks.LISTED_AT_ONCE", 7)
    reading = Reading(run)
    for number in range(2, 102, 2):
        write(run, number, numbered(number))
    (run.path / "messages" / chunk_name(102)).symlink_to("/dev/zero")
    write(run, 104, message("closed"))
    reading.reader.finish(0.0)
    assert reading.handler.payloads == list(range(2, 102, 2))
    assert reading.reader.closed
    named = [said for said in reading.said if "came after it" in said]
    assert len(named) == 20
    assert "000102.jsonl is a link" in reading.said[-2]
    assert "000105.jsonl: before it, chunks are missing in 32 more places" in reading.said[-1]


def test_a_folder_that_cannot_be_listed_is_named(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading(run)
    write(run, 1, message("closed"))

    def stale(_: object) -> object:
        raise OSError(116, "Stale file handle")

    reading.pump()
    monkeypatch.setattr("factory.control.chunks.os.scandir", stale)
    reading.reader.finish(0.0)
    assert reading.reader.closed
    assert "WARNING Messages may be missing" in reading.said[-1]


@pytest.mark.parametrize(
    "bad",
    [
        b"{not json}\n",
        b'{"method": "closed", "params": null}\n',
        b'["a list"]\n',
        b"\xff\xfe\x00\n",
        b'{"__dagster_pipes_version": "0.1"}\n',
    ],
)
def test_a_bad_line_is_named_and_the_rest_is_read(run: RunDirectory, bad: bytes) -> None:
    good = (json.dumps(numbered(1)) + "\n").encode()
    (run.directory("messages") / chunk_name(1)).write_bytes(bad + good)
    reading = Reading(run).pump()
    assert reading.handler.payloads == [1]
    [said] = reading.said
    assert said.startswith("ERROR A message of the run cannot be read.")
    assert "000001.jsonl" in said


@pytest.mark.parametrize("what", ["link", "dangling link", "pipe", "folder", "too large"])
def test_what_a_pod_put_in_the_place_of_a_chunk_is_refused_and_the_rest_is_read(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr("factory.control.messages.LARGEST_CHUNK_BYTES", 500)
    write(run, 1, numbered(1))
    write(run, 3, numbered(3))
    secret = tmp_path / "secret"
    secret.write_text(json.dumps(numbered(4711)) + "\n")
    chunk = run.path / "messages" / chunk_name(2)
    match what:
        case "link":
            chunk.symlink_to(secret)
        case "dangling link":
            chunk.symlink_to(tmp_path / "nothing")
        case "pipe":
            os.mkfifo(chunk)
        case "folder":
            chunk.mkdir()
        case _:
            chunk.write_text("x" * 501)
    reading = Reading(run).pump()
    assert reading.handler.payloads == [1, 3]
    [said] = reading.said
    assert "000002.jsonl is larger than 500" in said or "000002.jsonl is a link" in said
    assert len(reading.reader.unreadable) == 1


def test_a_chunk_of_the_largest_size_is_read(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(run, 1, numbered(1))
    size = (run.path / "messages" / chunk_name(1)).stat().st_size
    monkeypatch.setattr("factory.control.messages.LARGEST_CHUNK_BYTES", size)
    assert Reading(run).pump().handler.payloads == [1]


def test_messages_behind_a_link_are_not_read(run: RunDirectory, tmp_path: Path) -> None:
    """A pod moved the directory away and left a link to another run's."""
    reading = Reading(run)
    write(run, 1, numbered(4711))
    (run.path / "messages").rename(tmp_path / "elsewhere")
    (run.path / "messages").symlink_to(tmp_path / "elsewhere")
    reading.pump().pump()
    assert reading.handler.payloads == []
    assert "messages is a link" in reading.said[0]


@pytest.mark.parametrize("cursor", [b"x\n", b"-4\n", b"1\xff\n", b"9" * 5_000 + b"\n"])
def test_a_cursor_that_is_none_counts_as_the_beginning(run: RunDirectory, cursor: bytes) -> None:
    write(run, 1, message("report_custom_message", payload=STEP.model_dump()))
    (run.path / "messages" / "cursor").write_bytes(cursor)
    assert len(Reading(run).pump().said) == 1


def test_a_cursor_that_is_a_link_is_not_followed(run: RunDirectory, tmp_path: Path) -> None:
    write(run, 1, message("report_custom_message", payload=STEP.model_dump()))
    (tmp_path / "seven").write_text("7\n")
    (run.path / "messages" / "cursor").symlink_to(tmp_path / "seven")
    assert any("loss 2.5" in line for line in Reading(run).pump().said)
    assert (tmp_path / "seven").read_text() == "7\n"


def test_of_a_private_run_no_free_text_leaves(tmp_path: Path) -> None:
    run = open_run(tmp_path / "namespace", "private")
    row = "patient 4711"
    write(
        run,
        1,
        message("opened", extras={}),
        message("log", message=row, level="INFO"),
        message("closed", exception={"name": "ValueError", "message": row}),
    )
    (run.directory("messages") / chunk_name(2)).write_text(f"{row}\n")
    reading = Reading(run).pump()
    assert row not in str(reading.handler.messages)
    assert row not in str(reading.said)
    assert reading.reader.exception == {"name": "ValueError", "message": row}
    assert len(reading.reader.unreadable) == 1


def test_a_driver_started_again_goes_on_after_the_last_chunk(run: RunDirectory) -> None:
    reading = Reading(run)
    writer = NamespaceMessageWriter(interval_seconds=0.0)
    for number in (1, 2):
        with writer.open(reading.params) as channel:
            channel.write_message(message("opened", extras={}))
            channel.write_message(numbered(number))
        reading.pump()
    assert reading.handler.payloads == [1, 2]
    assert not reading.reader.closed


def test_a_later_attempt_does_not_hear_an_earlier_one(run: RunDirectory) -> None:
    first, second = Reading(run), Reading(run, attempt=2)
    assert messages_name(1) == "messages"
    with NamespaceMessageWriter().open(first.params) as channel:
        channel.write_message(numbered(1))
    assert second.pump().handler.payloads == []
    assert first.pump().handler.payloads == [1]


WRITE_MANY = """
import sys, time
from pathlib import Path
from factory.training.messages import ChunkChannel
channel = ChunkChannel(Path(sys.argv[1]), interval_seconds=0.0)
for number in range(int(sys.argv[2]), int(sys.argv[2]) + 100):
    report = {"method": "report_custom_message", "params": {"payload": number}}
    channel.write_message({"__dagster_pipes_version": "0.1", **report})
    time.sleep(0.001)
channel.close()
"""


@pytest.mark.slow
def test_two_writers_at_once_lose_and_overwrite_nothing(run: RunDirectory) -> None:
    folder = str(run.directory("messages"))
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITE_MANY, folder, str(100 * i)]) for i in range(3)
    ]
    reading = Reading(run)
    while any(writer.poll() is None for writer in writers):
        reading.pump()
        time.sleep(0.01)
    reading.pump()
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert sorted(reading.handler.payloads) == list(range(300))
    assert reading.said == []


def test_threads_may_report_while_a_chunk_is_published(run: RunDirectory) -> None:
    reading = Reading(run)
    with NamespaceMessageWriter(interval_seconds=0.0).open(reading.params) as channel:

        def report(start: int) -> None:
            for number in range(start, start + 500):
                channel.write_message(numbered(number))

        threads = [threading.Thread(target=report, args=(500 * i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    payloads = reading.pump().handler.payloads
    assert sorted(payloads) == list(range(2_000))
    for i in range(4):
        own = [p for p in payloads if 500 * i <= p < 500 * (i + 1)]
        assert own == sorted(own)


@pytest.mark.slow
def test_a_writer_killed_at_any_moment_leaves_whole_chunks(run: RunDirectory) -> None:
    folder = run.directory("messages")
    code = (
        "import sys; from pathlib import Path;"
        "from factory.training.messages import ChunkChannel;"
        "c = ChunkChannel(Path(sys.argv[1]), interval_seconds=0.0);"
        "m = {'__dagster_pipes_version': '0.1', 'method': 'report_custom_message'};"
        "print('on', flush=True);"
        "[c.write_message({**m, 'params': {'payload': 'x' * 20000}}) for _ in range(10**5)]"
    )
    for delay in (0.0, 0.05, 0.15):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    reading = Reading(run).pump()
    assert reading.said == []
    assert set(reading.handler.payloads) <= {"x" * 20000}


def test_a_full_disk_delays_messages_and_loses_none(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reading = Reading(run)
    monkeypatch.setattr("factory.training.messages.RETRY_SECONDS", 0.01)
    folder = run.path / "messages"
    with NamespaceMessageWriter(interval_seconds=0.0).open(reading.params) as channel:
        folder.rename(folder.with_name("away"))
        channel.write_message(numbered(1))
        time.sleep(0.1)
        folder.with_name("away").rename(folder)
        channel.write_message(numbered(2))
    assert reading.pump().handler.payloads == [1, 2]
    assert "messages wait" in capsys.readouterr().err


def test_closing_says_so_when_messages_cannot_be_written(run: RunDirectory) -> None:
    channel = ChunkChannel(run.directory("messages"), interval_seconds=60)
    channel.write_message(numbered(1))
    time.sleep(0.1)
    (run.path / "messages").rename(run.path / "away")
    channel.write_message(numbered(2))
    with pytest.raises(FileNotFoundError):
        channel.close()


def test_reports_are_readable() -> None:
    assert readable(Phase(name="cluster", detail="1 node", seconds=9.44)) == (
        "cluster: 1 node (9.4 s)"
    )
    assert readable(STEP) == "step 1/3, loss 2.5000, learning rate 0.0001, 4,096 tokens, 0.50 s"


def test_steps_are_thinned_out_on_the_page_but_the_last_is_shown(run: RunDirectory) -> None:
    lines = [STEP.model_copy(update={"step": i, "of": 50}) for i in range(1, 51)]
    write(run, 1, *(message("report_custom_message", payload=s.model_dump()) for s in lines))
    reading = Reading(run).pump()
    assert [said.split(",")[0] for said in reading.said] == ["INFO step 1/50", "INFO step 50/50"]
    assert len(reading.handler.payloads) == 50


def test_shares_are_shown_now_and_then_and_drift_at_once(run: RunDirectory) -> None:
    lines = [mixture(1), mixture(2, alarms=("s0 has 75.0%",)), mixture(3, notes=("s1 ends",))]
    lines.append(mixture(9))
    write(run, 1, *(message("report_custom_message", payload=s.model_dump()) for s in lines))
    said = Reading(run).pump().said
    assert said == [
        "INFO mixture at step 1/9, % of samples / tokens / loss tokens: "
        "public/text/s1 25.0 / 75.0 / 37.5, public/text/s0 75.0 / 25.0 / 62.5; 20.00% padding",
        "WARNING The mixture drifts: s0 has 75.0%.",
        "INFO s1 ends",
        said[0].replace("1/9", "9/9"),
    ]


def test_of_many_sources_the_largest_are_shown() -> None:
    few = mixture(1)
    line = few.model_copy(update={"sources": few.sources * 4})
    assert readable(line).endswith(" and 3 more; 20.00% padding")


def test_a_writer_that_lost_its_run_publishes_nothing_more(tmp_path: Path) -> None:
    lost = threading.Event()

    def check() -> None:
        if lost.is_set():
            raise Superseded("replaced by attempt 2")

    channel = ChunkChannel(tmp_path, interval_seconds=0.0, check=check)
    channel.write_message(numbered(1))
    while not list(tmp_path.glob("[0-9]*.jsonl")):
        time.sleep(0.01)
    lost.set()
    channel.write_message(numbered(2))
    with pytest.raises(Superseded):
        channel.close()
    assert [path.name for path in tmp_path.iterdir()] == [chunk_name(1)]
