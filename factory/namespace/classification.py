"""The classification of a version, derived again when it is written.

The other lines of defence are types (`keys`) and the loading of the code location; this one holds
for whoever writes, by whatever way they got here.
"""

from collections.abc import Sequence

from factory.errors import ClassificationError
from factory.keys import Classification, Key, PrivateKey, PublicKey, derive
from factory.namespace.version import Version


def classify(
    key: Key, inputs: Sequence[Version], source: Classification | None, *, private_on_purpose: bool
) -> None:
    """Check that `key` is in the tree that its inputs and its source require.

    Raises:
        ClassificationError: it is not, or nothing says which that is.
    """
    keys: list[Key] = [version.key for version in inputs]
    if source is not None:
        keys.append(PublicKey("source") if source == "public" else PrivateKey("source"))
    derived = derive(key.name, keys)
    if derived.classification == key.classification:
        return
    if derived.classification == "public":
        if not private_on_purpose:
            raise ClassificationError(_undeclared(key, inputs))
        return
    private = [str(one.key) for one in inputs if one.key.classification == "private"]
    reads = ", ".join(private) or "a private source"
    raise ClassificationError(
        f"{key} reads {reads}, so it must be private.\n"
        f'Write key=private("{key.name}") and move the file to '
        f"definitions/datasets/private/{key.name}.py."
    )


def _undeclared(key: Key, inputs: Sequence[Version]) -> str:
    reads = ", ".join(str(one.key) for one in inputs) or "a public source"
    return (
        f"{key} reads only {reads}, so it would be public.\n"
        f'Write key=public("{key.name}"), or say that it is meant with private_on_purpose=True.'
    )
