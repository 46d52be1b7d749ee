"""Files that are no clusters, of every kind: one line that says what to do, never a traceback."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from factory.control.clusters import FOLDER, cluster, declared
from factory.control.clusters.secrecy import holds_secret
from factory.errors import DeclarationError, SpecError
from tests.control.a_cluster import a_cluster, file

GOOD = "kind: local\nprofile: cpu\n"
SECRET = "s3cr3t-0123456789"  # noqa: S105  of nobody
CERTIFICATE = "-----BEGIN {0}-----\n{1}\n-----END {0}-----\n"


def said(folder: Path, content: str | bytes, name: str = "west") -> str:
    """What is said of a file with that in it."""
    data = content if isinstance(content, bytes) else content.encode()
    (folder / f"{name}.yaml").write_bytes(data)
    with pytest.raises(DeclarationError) as caught:
        cluster(name, folder)
    message = str(caught.value)
    assert message.startswith(f"definitions/clusters/{name}.yaml")
    assert "\n" not in message
    assert message.isprintable()
    assert SECRET not in message
    return message


def with_fields(folder: Path, **changes: Any) -> str:
    return said(folder, yaml.safe_dump(file(**changes)), "gpu-west")


def test_every_file_of_the_checkout_is_a_cluster() -> None:
    found = declared()
    assert found.wrong == {}
    assert "local" in found.clusters
    assert {path.stem for path in FOLDER.iterdir()} == found.clusters.keys()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"name: west\n# caf\xe9\n{GOOD}".encode("latin-1"), "line 2, is not UTF-8. Save the file"),
        (f"name: west\n{GOOD}".encode("utf-16"), "line 1, is not UTF-8"),
        (f"name: west\n{GOOD}\0", "line 4, holds a character that no text has (number 0)"),
        (f"name: 2024-13-45\n{GOOD}", "line 1: name is '2024-13-45', taken for a date, which it"),
        (f"name: 0x_\n{GOOD}", "line 1: name is '0x_', taken for a number"),
        (f"name: !!int abc\n{GOOD}", "name is 'abc', taken for a number, which it is not. Put it"),
        (f"name: !!float abc\n{GOOD}", "name is 'abc', taken for a number"),
        (f"name: !!bool abc\n{GOOD}", "name is 'abc', taken for yes or no"),
        (f"name: !!timestamp abc\n{GOOD}", "name is 'abc', taken for a date"),
        (f"name: {'9' * 5000}\n{GOOD}", f"name is '{'9' * 80}', taken for a number"),
        (f"name: 0x{'f' * 9000}\n{GOOD}", "name is a number of thousands of digits: put it in"),
        (f"token: !!int {SECRET}\n{GOOD}", "line 1: token is taken for a number"),
        (f"token: {{exec: [!!int {SECRET}]}}\n{GOOD}", "token.exec.0 is taken for a number"),
        (f"name: !{SECRET}\n{GOOD}", "could not determine a constructor for the tag."),
        (f"name: *{SECRET}\n{GOOD}", "found undefined alias."),
        (f"a: &{SECRET} 1\nname: &{SECRET} 2\n{GOOD}", "found duplicate anchor"),
        (f"a: {'[' * 5000}", "hundreds of lists or mappings in each other"),
        (f"name: &a {{x: *a}}\n{GOOD}", "name: write a text."),
        (f"name: west\n{GOOD}profile: h100\n", "line 4: profile is there already, in line 3"),
        (f"name: west\n{GOOD}environment: {{A: 1, A: 2}}", "environment.A is there already, in"),
        (f"? [a]\n: b\n{GOOD}", "line 1, is not YAML: found unhashable key"),
        (f"name: 2024-11-30\n{GOOD}", "name is '2024-11-30': put it in"),
        (f"name: 7\n{GOOD}", "name is '7': put it in quotes"),
        (f"name: west\n{GOOD}1: a\n", "1 is '1': put it in quotes"),
        (f'name: west\n{GOOD}? "a\\nb"\n: 1\n', "'a\\nb': no such field"),
        (f'name: "a\\nb"\n{GOOD}', "name is 'a\\nb': write a word without / and line breaks"),
        (f"name: ../west\n{GOOD}", "name is '../west': write a word without /"),
        (f"name: west\n{GOOD}---\nname: east\n", "expected a single document"),
    ],
)
def test_texts(tmp_path: Path, content: str | bytes, message: str) -> None:
    assert message in said(tmp_path, content)


def test_a_file_may_begin_with_a_mark_and_share_a_mapping(tmp_path: Path) -> None:
    text = f"\ufeffname: west\n{GOOD}rank_environment:\n  <<: {{A: '1', B: '1'}}\n  A: '2'\n"
    (tmp_path / "west.yaml").write_text(text, encoding="utf-8")
    assert cluster("west", tmp_path).rank_environment == {"A": "2", "B": "1"}


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").mkdir()
    (tmp_path / "b.yaml").symlink_to("nowhere")
    os.mkfifo(tmp_path / "c.yaml")
    (tmp_path / ".d.yaml").symlink_to("whom an editor asks for")
    assert declared(tmp_path).wrong == {
        "a": "definitions/clusters/a.yaml is no file. Remove it, or give it another ending.",
        "b": "definitions/clusters/b.yaml cannot be read: No such file or directory. Write it "
        "anew, or remove it.",
        "c": "definitions/clusters/c.yaml is no file. Remove it, or give it another ending.",
    }


class TestOneWrongFile:
    @pytest.fixture(autouse=True)
    def _files(self, tmp_path: Path) -> None:
        (tmp_path / "east.yaml").write_text(f"name: east\n{GOOD}")
        (tmp_path / "west.yaml").write_text("name: [\n")
        (tmp_path / "north.yml").write_text(f"name: north\n{GOOD}")

    def test_stops_nothing_that_is_about_another(self, tmp_path: Path) -> None:
        assert cluster("east", tmp_path).name == "east"
        with pytest.raises(DeclarationError, match=r"west\.yaml, line 2, is not YAML"):
            cluster("west", tmp_path)

    def test_is_listed_with_its_problem(self, tmp_path: Path) -> None:
        found = declared(tmp_path)
        assert found.clusters.keys() == {"east"}
        assert "line 2, is not YAML" in found.wrong["west"]
        assert found.wrong["north.yml"].endswith("north.yml is not read: rename it to north.yaml.")

    def test_of_another_ending_is_to_be_renamed(self, tmp_path: Path) -> None:
        with pytest.raises(DeclarationError, match=r"rename it to north\.yaml"):
            cluster("north", tmp_path)
        (tmp_path / "north.yaml").write_text(f"name: north\n{GOOD}")
        assert cluster("north", tmp_path).name == "north"

    def test_is_known_by_name(self, tmp_path: Path) -> None:
        with pytest.raises(SpecError, match="Known: east, north, west"):
            cluster("south", tmp_path)

    @pytest.mark.parametrize("name", ["../east", "clusters/../east", "", ".", "east\n", "*"])
    def test_no_name_leads_elsewhere(self, tmp_path: Path, name: str) -> None:
        inner = tmp_path / "clusters"
        inner.mkdir()
        with pytest.raises(SpecError, match="No cluster"):
            cluster(name, inner)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("https://host:99999", "its port is none: write a number from 1 to 65535"),
        ("https://host:abc", "its port is none"),
        ("https://host:-1", "its port is none"),
        ("https://host:0", "its port is none"),
        ("https://host:", "its port is none"),
        ("https://a b:6443", "write it without blanks, line breaks"),
        (" https://host", "write it without blanks"),
        ("https://host\n:6443", "write it without blanks"),
        ("https://host\t", "write it without blanks"),
        ("https://höst", "begins with xn--"),
        ("https://-", "its host is no name and no address"),
        ("https://..", "its host is no name and no address"),
        ("https://a..b", "its host is no name and no address"),
        ("https://" + "a" * 64, "its host is no name and no address"),
        ("https://999.1.1.1", "its host is no name and no address"),
        ("https://host%2f", "its host is no name and no address"),
        ("https://[::1", "in brackets"),
        ("https://[::g]", "brackets"),
        ("https://host/../..", "write its path without . and .."),
    ],
)
def test_addresses(tmp_path: Path, address: str, message: str) -> None:
    found = with_fields(tmp_path, api_server=address)
    assert message in found
    assert f"api_server is {address[:80]!r}: " in found
    if address.startswith("https://host"):
        template = address.replace("host", "{service}", 1)
        route = {"route": "template", "template": template}
        assert message in with_fields(tmp_path, dashboard=route)


@pytest.mark.parametrize(
    "address",
    [
        *("https://h", "https://h.", "https://a_b.c-d.E:65535", "https://10.0.0.1:6443"),
        *("https://[::1]:6443", "https://h:6443/k8s/clusters/c-m-x", "https://xn--hst-sna.example"),
    ],
)
def test_addresses_that_are_some(address: str) -> None:
    assert a_cluster(api_server=address).address == address


def test_what_an_address_asks_for_is_not_repeated(tmp_path: Path) -> None:
    found = with_fields(tmp_path, api_server=f"https://host?token={SECRET}")
    assert "api_server is 'https://host?...': write host, port and path only" in found


@pytest.mark.parametrize("inside", ["garbage", "", "AAAA", "ü", f"{SECRET}"])
def test_a_certificate_that_is_none(tmp_path: Path, inside: str) -> None:
    text = CERTIFICATE.format("CERTIFICATE", inside)
    found = with_fields(tmp_path, ca={"file": None, "inline": text})
    assert "ca.inline: is a PEM certificate whose inside is none" in found


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ({"command": [""]}, "token.exec.command: names no program"),
        ({"command": ["a\0b"]}, "token.exec.command.0: holds a NUL"),
        ({"command": ["a", "\ud800"]}, "token.exec.command.1: holds a NUL or what is no UTF-8"),
        ({"command": ["a"], "environment": {"A=B": "x"}}, "'A=B' is no name of a variable"),
        ({"command": ["a"], "environment": {"A": "\0"}}, "A holds a NUL"),
        (
            {"command": ["a"], "environment": {"VAULT_TOKEN": SECRET}},
            "VAULT_TOKEN: the name says that it holds a secret, and this file is committed. Remove "
            "it, revoke what was there, and set it in the factory's own environment",
        ),
    ],
)
def test_programs(tmp_path: Path, program: dict[str, Any], message: str) -> None:
    assert message in with_fields(tmp_path, token={"file": None, "exec": program})


@pytest.mark.parametrize("field", ["environment", "rank_environment"])
@pytest.mark.parametrize(
    "name",
    [
        *("PASSWORD", "PGPASSWORD", "db_password", "DB_PASS", "MYSQL_PWD", "KEY_PASSPHRASE"),
        *("HF_TOKEN", "AWS_SESSION_TOKEN", "TOKEN", "AZURE_CLIENT_SECRET", "WANDB_API_KEY"),
        *("AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_ACCOUNT_KEY", "NGC_APIKEY", "SSH_PRIVATE_KEY"),
    ],
)
def test_a_variable_for_a_secret(tmp_path: Path, field: str, name: str) -> None:
    found = with_fields(tmp_path, **{field: {name: SECRET}})
    assert f"{field}: {name}: the name says that it holds a secret" in found
    assert "A file on a volume of `mounts` can hold it" in found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("NCCL_SOCKET_IFNAME", "eth0"), ("NCCL_IB_PKEY", "0"), ("NCCL_DEBUG", "INFO")),
        *(("TOKENIZERS_PARALLELISM", "false"), ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")),
        *(("HF_TOKEN_PATH", "/opt/hf"), ("PAD_TOKEN", "<pad>"), ("MAX_TOKENS", "4096")),
        *(("AWS_WEB_IDENTITY_TOKEN_FILE", "/a"), ("GOOGLE_APPLICATION_CREDENTIALS", "/a.json")),
        *(("SORT_KEY", "name"), ("MONKEY", "x"), ("BYPASS", "x"), ("OLDPWD", "/"), ("PWD", "/")),
        *(("KEYBOARD", "x"), ("SECRETARY", "x"), ("COMPASS", "north"), ("AWS_REGION", "x")),
    ],
)
def test_a_variable_for_something_else(name: str, value: str) -> None:
    assert not holds_secret(name, value)


@pytest.mark.parametrize(
    "secret",
    [
        *("sha256~abcdefghijklmnop", "hf_abcdefghijklmnop", "ghp_abcdefghijklmnopqrst"),
        *("github_pat_abcdefghijklmnopqrst", "glpat-abcdefghijklmnopqrst"),
        *("nvapi-abcdefghijklmnopqrst", "http://ada:lovelace@proxy.example"),
    ],
)
def test_a_text_that_is_a_secret(tmp_path: Path, secret: str) -> None:
    found = with_fields(tmp_path, environment={"X": secret})
    assert "holds what looks like a token, a key or a password" in found
    assert secret not in found
