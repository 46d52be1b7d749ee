"""`load`: the tokenizer that a recipe names, from a path or from an installed package."""

from pathlib import Path

from factory.data import tokens
from factory.data.encoding import byte_level, hugging_face, sentence_piece, tekken
from factory.data.encoding.tokenizer import Tokenizer
from factory.errors import SpecError

SENTENCE_PIECE = "tokenizer.model"


def load(name: str | Path, *, end: str | None = None) -> Tokenizer:
    """`bytes`, `tekken_240911`, or a path.

    A path is a directory with `tokenizer.json` or `tokenizer.model`, or a file: `.json` of
    Tekken's form, `.model` of SentencePiece. A name of a repository on a hub is none of these.

    Args:
        name: what a recipe says.
        end: the token that ends a document, where a directory does not say it.

    Raises:
        SpecError: nothing is there, or what is there is no tokenizer.
    """
    if name == byte_level.NAME:
        return byte_level.read()
    if name == tokens.TOKENIZER:
        return tekken.read(tokens.file())
    path = Path(name)
    if path.is_dir():
        model = path / SENTENCE_PIECE
        if model.is_file() and not (path / hugging_face.FILE).is_file():
            return sentence_piece.read(model)
        return hugging_face.read(path, end)
    if not path.is_file():
        raise SpecError(
            f"No tokenizer at {path}: it is neither a directory nor a file, and nothing is "
            f"fetched. Write {byte_level.NAME}, {tokens.TOKENIZER}, or the path of a directory "
            f"with {hugging_face.FILE}."
        )
    if ".model" in path.suffixes:
        return sentence_piece.read(path)
    if path.name == hugging_face.FILE:
        return hugging_face.read(path.parent, end)
    return tekken.read(path)
