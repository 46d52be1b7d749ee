"""Links that lead from the public tree into the private one, on a machine that has both.

In a pod of a public run they lead nowhere, since the private tree is no volume of it. Here the
namespace or the gate refuses them.
"""

import shutil
from pathlib import Path

import pytest

from factory.control.kube.mounts import refuse_links
from factory.control.reach import refuse_private
from factory.errors import ClassificationError, NamespaceError, SpecError
from factory.keys import private, public
from factory.namespace import Namespace, Provenance, RunDirectory, Version
from factory.overrides import Field, parse
from factory.spec import RunSpec


class TestOverridesOnAMachineWithBothTrees:
    """Here no mount keeps them apart, so the gate does, also where a link leads there."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        (tmp_path / "root/private/runs/x").mkdir(parents=True)
        (tmp_path / "root/public/text").mkdir(parents=True)
        (tmp_path / "root/public/text/link").symlink_to("../../private/runs")
        (tmp_path / "root/public/loop").symlink_to("loop")
        (tmp_path / "other").symlink_to("root")
        return tmp_path / "root"

    @pytest.mark.parametrize(
        "value",
        [
            "{root}/private/runs/x",
            "{root}/private",
            "{root}/public/text/link/x",
            "{root}/../other/private/runs/x",
            "{root}/public/../private/runs/gone",
            "file://{root}/private/runs/x",
            " {root}/private/runs/x",
            "\t{root}/private",
            "{root}/private\u00a0",
            "file:{root}/private/runs/x",
            "FILE://{root}/private",
            "file://localhost{root}/private/runs/x",
            "file:///{root}/private/runs/x",
            "file://{root}/%70rivate/runs/x",
            "file://{root}/public/text/link/x",
            "msc://default{root}/private/runs/x",
            "msc://default{root}/public/text/link",
            "['{root}/private']",
            '["{root}/public/x", "{root}/private"]',
            "[1.0, {root}/private, 0.5, {root}/public]",
            "0.5 {root}/private 0.5 {root}/public",
            "('file://{root}/private',)",
            "{root}/private,",
            "/proc/self/root{root}/private/runs/x",
            "{root}/private/a\0b",
            "{root}/public/loop/../../private",
        ],
    )
    def test_are_refused(self, root: Path, value: str) -> None:
        spec = self.spec(value.format(root=root))
        with pytest.raises(SpecError, match="lies in the private tree, and the run is public"):
            refuse_private(spec, "public", root)
        refuse_private(spec, "private", root)

    @pytest.mark.parametrize(
        "value",
        [
            *("bytes", "", " ", "/", "none", "{root}/public/runs/x", "{root}/privateer"),
            *("/models/x", "a\0b", "{root}/public/loop", "hf://owner/private", "~nobody/x", "%ff"),
            *("~a\0b", "\ud800", "%00/"),
            *("file://{root}/public/x", "['{root}/public/x', '{root}/privateer']", "[/, x:, ://]"),
        ],
    )
    def test_others_are_not(self, root: Path, value: str) -> None:
        refuse_private(self.spec(value.format(root=root)), "public", root)

    @pytest.mark.parametrize(
        "value",
        [
            "{root}/private/w",
            "['{root}/private']",
            "{root}/private",
            "file:{root}/private/my w",
            "~/root dir/private",
        ],
    )
    def test_a_root_with_a_blank_in_it_has_a_private_tree_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        root = tmp_path / "root dir"
        with pytest.raises(SpecError, match="lies in the private tree"):
            refuse_private(self.spec(value.format(root=root)), "public", root)

    def test_what_the_trainer_is_given_is_what_is_looked_at(self, root: Path) -> None:
        text = Field(type="str", default="")
        for before in ("", " ", "\t\n", "\u2003"):
            value = f"{before}{root}/private/runs/x"
            assert parse("dataset.tokenizer", value, text) == f"{root}/private/runs/x"
            with pytest.raises(SpecError, match="lies in the private tree"):
                refuse_private(self.spec(value), "public", root)

    def test_a_relative_path_begins_where_the_factory_runs(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(root / "public")
        for value in (" ../private/runs", "file:../private/runs", "['x', '../private']"):
            with pytest.raises(SpecError, match="lies in the private tree"):
                refuse_private(self.spec(value), "public", root)

    def spec(self, value: str) -> RunSpec:
        return RunSpec(recipe="r", mix="m", overrides={"dataset.tokenizer": value})


class TestInTheNamespace:
    @pytest.fixture
    def namespace(self, tmp_path: Path) -> Namespace:
        return Namespace(tmp_path)

    @pytest.fixture
    def letters(self, namespace: Namespace) -> Version:
        """A private version."""
        key = private("text/letters")
        with namespace.write(
            key,
            inputs=[],
            input_id="1",
            provenance=Provenance(run_id="run-1", identity="tester", image=None),
            parameters={},
            code="c",
            checks=(),
            licenses=(),
            source="private",
        ) as staging:
            (staging.path / "letters.txt").write_text("secret")
            staging.describe(content_id="letters")
        return staging.version

    @pytest.mark.parametrize(
        ("link", "target"),
        [
            ("public/runs/run-1", "../../private/runs/run-1"),
            ("public/runs", "../private/runs"),
            ("public", "private"),
        ],
    )
    def test_a_run_directory_behind_one(self, tmp_path: Path, link: str, target: str) -> None:
        (tmp_path / "private/runs/run-1").mkdir(parents=True)
        (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / link).symlink_to(target)
        with pytest.raises(ClassificationError, match="is reached through a link"):
            refuse_links(RunDirectory("public", "run-1", tmp_path))

    def test_a_dataset_whose_current_version_is_one(
        self, namespace: Namespace, letters: Version
    ) -> None:
        link = namespace.root / "public/text/letters"
        link.parent.mkdir(parents=True)
        link.symlink_to(letters.path)
        with pytest.raises(NamespaceError, match="which is not one of"):
            namespace.current(public("text/letters"))

    @pytest.mark.parametrize("of", ["a version", "versions", "a folder of datasets"])
    def test_a_dataset_behind_one(self, namespace: Namespace, letters: Version, of: str) -> None:
        there = letters.path.relative_to(namespace.root / "private")
        part = {"a version": there, "versions": there.parent, "a folder of datasets": Path("text")}
        link = namespace.root / "public" / part[of]
        link.parent.mkdir(parents=True)
        link.symlink_to(namespace.root / "private" / part[of])
        found = namespace.version(public("text/letters"), letters.id)
        (damage,) = namespace.verify(found)
        assert damage.problem == f"is of {letters}, but the directory is {found}"

    def test_a_file_of_a_version_that_is_one(self, namespace: Namespace, letters: Version) -> None:
        """A version that was copied, with one file that leads to another's."""
        copy = letters.path.with_name("0" * 20)
        shutil.copytree(letters.path, copy)
        (copy / "letters.txt").unlink()
        (copy / "letters.txt").symlink_to(letters.path / "letters.txt")
        damage = namespace.verify(namespace.version(letters.key, copy.name))
        assert "is a symbolic link, not a file" in [one.problem for one in damage]
