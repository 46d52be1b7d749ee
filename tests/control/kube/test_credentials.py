"""Where tokens come from, when they are asked for anew, and that none is said."""

import base64
import json
import shlex
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from factory.control.clusters.access import Exec
from factory.control.kube import credentials
from factory.control.kube.credentials import ExecTokens, FileTokens, expiry
from factory.errors import ClusterError

CANARY = "canary-55e1-token"


def jwt(**claims: Any) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"eyJhbGciOiJSUzI1NiJ9.{body}.c2lnbmF0dXJl"


def program(script: str) -> ExecTokens:
    return ExecTokens(Exec(command=["sh", "-c", script], environment={"WORD": CANARY}))


def counted(folder: Path, output: str) -> tuple[ExecTokens, Callable[[], int]]:
    """A program that prints this, and how often it was run."""
    runs = folder / "runs"
    runs.touch()
    script = f"echo x >> {runs}; printf %s {shlex.quote(output)}"
    return program(script), lambda: runs.read_text().count("x")


def fails(what: Callable[[], Any]) -> str:
    with pytest.raises(ClusterError) as caught:
        what()
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def credential(ends: datetime | None) -> str:
    status: dict[str, str] = {"token": CANARY}
    if ends is not None:
        status["expirationTimestamp"] = ends.isoformat()
    return json.dumps({"kind": "ExecCredential", "status": status})


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    tokens = FileTokens(path)
    assert tokens.token() == "one"
    other = tmp_path / "new"
    other.write_text("two")
    other.replace(path)
    assert tokens.token() == "two"


@pytest.mark.parametrize("content", ["", " \n", f"{CANARY} {CANARY}", f"{CANARY}\nx", "t\u00f6ken"])
def test_what_is_no_token(tmp_path: Path, content: str) -> None:
    path = tmp_path / "token"
    path.write_text(content)
    assert str(path) in fails(FileTokens(path).token)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "No such file" in fails(FileTokens(tmp_path / "none").token)


def test_a_program_prints_a_token_and_knows_its_variables() -> None:
    assert program("echo $WORD").token() == CANARY


def test_a_program_is_told_which_version_to_print() -> None:
    info = program('echo "$KUBERNETES_EXEC_INFO" | grep -c client.authentication.k8s.io/v1')
    assert info.token() == "1"


def test_a_token_without_an_end_is_kept_until_it_is_not_taken(tmp_path: Path) -> None:
    tokens, runs = counted(tmp_path, CANARY)
    assert [tokens.token() for _ in range(3)] == [CANARY] * 3
    assert runs() == 1
    tokens.renew()
    assert tokens.token() == CANARY
    assert runs() == 2


@pytest.mark.parametrize(("minutes", "times"), [(60, 1), (0.5, 3), (-5, 3)])
def test_a_token_is_asked_for_again_before_it_ends(
    tmp_path: Path, minutes: float, times: int
) -> None:
    ends = datetime.now(UTC) + timedelta(minutes=minutes)
    tokens, runs = counted(tmp_path, credential(ends))
    assert [tokens.token() for _ in range(3)] == [CANARY] * 3
    assert runs() == times


def test_the_end_is_read_from_the_token_where_nothing_else_says_it(tmp_path: Path) -> None:
    tokens, runs = counted(tmp_path, jwt(exp=time.time() + 10))
    tokens.token()
    tokens.token()
    assert runs() == 2


def test_a_program_that_fails_is_named_and_not_quoted() -> None:
    said = fails(program(f"echo {CANARY}; echo {CANARY} >&2; exit 3").token)
    assert "sh, which prints its token, ended with code 3" in said


def test_a_program_that_is_not_there() -> None:
    said = fails(ExecTokens(Exec(command=["no-such-program"])).token)
    assert "no-such-program, which prints its token, cannot be run" in said


def test_a_program_that_waits_for_somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "EXEC_SECONDS", 0.2)
    assert "printed no token within 0.2 s" in fails(program(f"echo {CANARY}; exec sleep 30").token)


@pytest.mark.parametrize("output", ['{"status": {}}', '{"kind": "x"}', ""])
def test_a_program_that_prints_none(tmp_path: Path, output: str) -> None:
    tokens, _ = counted(tmp_path, output)
    assert "what sh prints holds no token" in fails(tokens.token)


def test_a_program_that_prints_json_without_an_end(tmp_path: Path) -> None:
    """Nor does its end count: a token may be of that kind."""
    (tmp_path / "printed").write_text("[" * 200_000)
    assert program(f"cat {tmp_path}/printed").token() == "[" * 200_000
    body = base64.urlsafe_b64encode(b"[" * 200_000).decode()
    assert expiry(f"a.{body}.c") is None


def test_expiry() -> None:
    assert expiry(jwt(exp=1_800_000_000)) == datetime.fromtimestamp(1_800_000_000, UTC)
    for odd in ("opaque", "a.b.c", "a.!!.c", jwt(), jwt(exp="soon"), jwt(exp=1e30)):
        assert expiry(odd) is None, odd
