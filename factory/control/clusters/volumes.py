"""Volumes: what of the namespace a pod can see, and what else is mounted.

The two trees are two volumes, and neither lies in the other. So a public run's pod refers to
nothing that holds private data, and no path and no link inside it can lead there.
"""

from pathlib import PurePosixPath
from typing import Self

from pydantic import Field, model_validator

from factory.control.clusters.common import Part
from factory.control.clusters.words import AbsolutePath, ObjectName, overlap

_OF_NODES = ("/dev", "/proc", "/run", "/var/lib/containerd", "/var/lib/kubelet", "/var/run")
"""Of a node: through these one reaches files of every pod on it, and what those have mounted."""

_TAKEN = ("/tmp", "/dev", "/proc", "/sys", "/run", "/var/run", "/etc")  # noqa: S108  paths in pods


class Volume(Part, frozen=True):
    """Where files come from."""

    claim: ObjectName | None = Field(default=None, description="A PersistentVolumeClaim.")
    host_path: AbsolutePath | None = Field(
        default=None, description="A directory of every node; needs `pod_security: privileged`."
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.claim is None) == (self.host_path is None):
            raise ValueError("write one of claim and host_path")
        for theirs in _OF_NODES:
            if self.host_path is not None and overlap(self.host_path, theirs):
                raise ValueError(
                    f"host_path {self.host_path} would show {theirs} of a node, through which one "
                    "reaches what other pods there have mounted. Mount another directory"
                )
        return self

    def overlaps(self, other: "Volume") -> bool:
        """Whether a file of one can be a file of the other."""
        if self.host_path is not None and other.host_path is not None:
            return overlap(self.host_path, other.host_path)
        return self.claim is not None and self.claim == other.claim


class Tree(Part, frozen=True):
    """The namespace as pods see it: FACTORY_ROOT, with a volume for each tree."""

    path: AbsolutePath = Field(
        default="/namespace", description="Where it is in every pod; the same path as here is best."
    )
    public: Volume = Field(description="Its root is the directory `public`.")
    private: Volume | None = Field(
        default=None,
        description="Its root is the directory `private`. Without it no private run goes there.",
    )

    @model_validator(mode="after")
    def _are_apart(self) -> Self:
        _refuse_taken(self.path)
        if self.private is not None and self.private.overlaps(self.public):
            raise ValueError(
                "public and private are one volume, or one lies in the other: a public run would "
                "be given what holds private data. Make a volume for each of the two directories"
            )
        return self


class Mount(Volume, frozen=True):
    """Something else that every pod sees, read-only."""

    path: AbsolutePath = Field(description="Where it is in every pod.")

    def refuse_beside(self, tree: Tree) -> None:
        """Raise `ValueError` where it would show what the tree keeps apart, or cover it."""
        _refuse_taken(self.path)
        if overlap(self.path, tree.path):
            raise ValueError(f"{self.path} covers the namespace at {tree.path}; mount it elsewhere")
        if tree.private is not None and self.overlaps(tree.private):
            raise ValueError(
                f"{self.path} would show the private tree to public runs. Remove it: a private run "
                f"has that tree at {tree.path}/private"
            )
        around = tree.public.host_path and str(PurePosixPath(tree.public.host_path).parent)
        if self.host_path and around and around != "/" and overlap(self.host_path, around):
            raise ValueError(
                f"{self.path} would show {around}, where the namespace lies with both of its "
                "trees. Mount a directory outside it"
            )


def _refuse_taken(path: str) -> None:
    for taken in _TAKEN:
        if overlap(path, taken):
            raise ValueError(f"{path}: {taken} of a pod is taken; choose another path")
