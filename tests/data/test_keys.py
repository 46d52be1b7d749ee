"""`derive` over every combination; every refusal, by its message; leaks as type errors."""

import itertools
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from factory.errors import ClassificationError, FactoryError, KeyFormatError
from factory.keys import (
    MAX_KEY_CHARACTERS,
    MAX_SEGMENT_CHARACTERS,
    PrivateKey,
    PublicKey,
    derive,
    parse,
    private,
    public,
)

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_derive_over_every_combination(count) -> None:
    makers = {"public": public, "private": private}
    for classifications in itertools.product(makers, repeat=count):
        keys = [makers[name](f"text/a{number}") for number, name in enumerate(classifications)]

        derived = derive("text/out", keys)

        expected = private if "private" in classifications else public
        assert derived == expected("text/out"), classifications


def test_derive_without_inputs() -> None:
    with pytest.raises(ClassificationError) as refusal:
        derive("text/out", [])
    assert str(refusal.value) == (
        "'text/out' has no inputs to derive a classification from. "
        "A source states its own: write public(...) or private(...)."
    )


def test_derive_checks_the_name() -> None:
    with pytest.raises(KeyFormatError, match="Key 'public/Text' has the segment 'Text'"):
        derive("Text", [public("a")])


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("", ""),
        ("/", ""),
        ("/text", ""),
        ("text/", ""),
        ("text//plos", ""),
        (".", "."),
        ("..", ".."),
        ("text/../plos", ".."),
        ("../private/letters", ".."),
        ("text/.hidden", ".hidden"),
        ("text/plos.versions", "plos.versions"),
        ("Text/plos", "Text"),
        ("text/pl os", "pl os"),
        ("text/plos\n", "plos\\n"),
        ("text/plos\0", "plos\\x00"),
        ("text/plös", "plös"),
        ("text/plos-2", "plos-2"),
        ("text\\plos", "text\\\\plos"),
        ("~", "~"),
        ("text/*", "*"),
    ],
)
@pytest.mark.parametrize("make", [public, private])
def test_segments_that_no_key_has(make, name, segment) -> None:
    with pytest.raises(KeyFormatError) as refusal:
        make(name)
    tree = make.__name__
    assert str(refusal.value) == (
        f"Key {f'{tree}/{name}'!r} has the segment '{segment}'; a segment is one or more of "
        "a-z, 0-9 and _, so there is no empty, dotted or upper-case one."
    )


def test_the_longest_segment() -> None:
    longest = "a" * MAX_SEGMENT_CHARACTERS
    assert public(f"text/{longest}").parts == ("public", "text", longest)
    with pytest.raises(KeyFormatError) as refusal:
        public(f"text/{longest}a")
    assert str(refusal.value).endswith(
        "has a segment of 65 characters; the limit is 64. Shorten it."
    )


def test_the_longest_key() -> None:
    room = MAX_KEY_CHARACTERS - len("private/")
    name = "/".join(["a" * 63] * 7 + ["a" * (room - 7 * 64)])
    assert len(private(name).path) == MAX_KEY_CHARACTERS
    with pytest.raises(KeyFormatError, match="has 513 characters; file systems allow 512"):
        private(name + "a")


def test_file_systems_accept_the_longest_key(tmp_path) -> None:
    room = MAX_KEY_CHARACTERS - len("private/")
    key = private("/".join(["a" * 63] * 7 + ["a" * (room - 7 * 64)]))
    versions = tmp_path / f"{key}.versions" / ".staging-0123456789abcdef0123456789abcdef"
    versions.mkdir(parents=True)
    assert versions.is_dir()


def test_the_reserved_segment() -> None:
    with pytest.raises(KeyFormatError) as refusal:
        public("runs/text")
    assert str(refusal.value) == (
        "Key 'public/runs/text' is under 'runs', which holds run directories. "
        "Choose another first segment."
    )
    assert public("text/runs").path == "public/text/runs"


@pytest.mark.parametrize("key", [public("text/plos"), private("text/plos"), public("a_1/b/c/d")])
def test_a_key_is_its_path(key) -> None:
    assert str(key) == f"{key}" == key.path == f"{key.classification}/{key.name}"
    assert parse(key.path) == key
    assert type(parse(key.path)) is type(key)
    assert "/".join(key.parts) == key.path
    assert pickle.loads(pickle.dumps(key)) == key  # noqa: S301 - made in this line
    assert not isinstance(key, str)


def test_below_a_key() -> None:
    assert public("text") / "plos" == public("text/plos")
    assert type(private("text") / "plos") is PrivateKey
    with pytest.raises(KeyFormatError, match=r"has the segment '\.\.'"):
        _ = public("text") / ".."


def test_the_same_name_in_both_trees_is_two_keys() -> None:
    assert public("text/plos") != private("text/plos")
    assert len({public("text/plos"), private("text/plos"), PublicKey("text/plos")}) == 2


@pytest.mark.parametrize(
    ("path", "start"),
    [
        ("", ""),
        ("text/plos", "text"),
        ("Public/text", "Public"),
        ("/public/text", ""),
        ("publicity/text", "publicity"),
        ("../public/text", ".."),
    ],
)
def test_paths_that_are_no_keys(path, start) -> None:
    with pytest.raises(KeyFormatError) as refusal:
        parse(path)
    assert str(refusal.value) == (
        f"Key {path!r} starts with {start!r}; a key starts with public/ or private/, "
        "for instance public/text/plos."
    )


def test_a_classification_alone_is_no_key() -> None:
    for path in ("public", "public/", "private"):
        with pytest.raises(KeyFormatError, match="has the segment ''"):
            parse(path)


def test_refusals_are_factory_errors() -> None:
    assert issubclass(KeyFormatError, FactoryError)
    assert issubclass(KeyFormatError, ValueError), "pydantic shows it as a wrong field"


LEAKS = """
from factory.keys import Key, PublicKey, derive, parse, private, public


def publish(key: PublicKey) -> None:
    print(key)


closed, opened = private("text/letters"), public("text/articles")
publish(opened)
publish(opened / "raw")
publish(derive("text/a", [opened]))
publish(closed)                                 # leak
publish(closed / "raw")                         # leak
publish(derive("text/a", [closed]))             # leak
publish(derive("text/a", [opened, closed]))     # leak
publish(parse("public/text/a"))                 # leak: known only at run time
publish("public/text/a")                        # leak: a string says nothing


def either(key: Key) -> None:
    publish(key)                                # leak
    publish(derive("text/a", [key]))            # leak
    if isinstance(key, PublicKey):
        publish(key)
"""


@pytest.mark.slow
def test_a_leak_is_a_type_error(tmp_path) -> None:
    file = tmp_path / "leaks.py"
    file.write_text(LEAKS)
    config = {
        "include": [str(file)],
        "extraPaths": [str(CHECKOUT)],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.12",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))

    result = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--project", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )

    report = json.loads(result.stdout)
    reported = {
        one["range"]["start"]["line"]: one["message"]
        for one in report["generalDiagnostics"]
        if one["severity"] == "error"
    }
    expected = {number for number, line in enumerate(LEAKS.split("\n")) if "# leak" in line}
    assert set(reported) == expected
    assert all('to parameter "key" of type "PublicKey"' in text for text in reported.values())
