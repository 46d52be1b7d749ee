"""SentencePiece models, read without their package.

The file is a protocol buffer of pieces with scores. It is rebuilt as a tokenizer of the package
`tokenizers`: byte-pair models and unigram models, with bytes for what no piece holds.
"""

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from factory.data.encoding.hugging_face import Fast
from factory.data.encoding.tokenizer import Tokenizer
from factory.errors import SpecError

if TYPE_CHECKING:
    import tokenizers

SPACE = "▁"

_NORMAL, _UNKNOWN, _USER_DEFINED, _BYTE = 1, 2, 4, 6
_UNIGRAM, _BPE = 1, 2

type _Value = int | bytes


class _Piece(NamedTuple):
    text: str
    score: float
    kind: int


@dataclass(frozen=True, slots=True)
class _Model:
    pieces: list[_Piece]
    kind: int
    byte_fallback: bool
    begin: int
    end: int
    charsmap: bytes
    prefix: bool
    """Whether a text begins as if a space were before it."""

    squeezed: bool
    """Whether spaces in a row become one."""


def read(file: Path) -> Tokenizer:
    """The tokenizer in a `.model` file.

    Raises:
        SpecError: it is none, or of a kind that is not rebuilt here.
    """
    content = file.read_bytes()
    try:
        model = _parsed(content)
    except (ValueError, IndexError, KeyError, TypeError, struct.error) as error:
        raise SpecError(f"{file} is no SentencePiece model: {error}.") from error
    if not any(piece.kind == _UNKNOWN for piece in model.pieces):
        raise SpecError(f"{file} is no SentencePiece model: it has no piece for what is unknown.")
    if model.kind not in (_UNIGRAM, _BPE):
        raise SpecError(f"{file} is a SentencePiece model of words or characters, not of pieces.")
    if model.end < 0:
        raise SpecError(f"{file} has no token that ends a document.")
    return Tokenizer(
        name=file.name,
        codec=Fast(_rebuilt(model)),
        size=len(model.pieces),
        begin=model.begin if model.begin >= 0 else None,
        end=model.end,
        files={file.name: hashlib.sha256(content).hexdigest()},
    )


def _rebuilt(model: _Model) -> "tokenizers.Tokenizer":
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers

    unknown = next(at for at, piece in enumerate(model.pieces) if piece.kind == _UNKNOWN)
    if model.kind == _BPE:
        core = models.BPE(
            {piece.text: at for at, piece in enumerate(model.pieces)},
            list(_merges(model.pieces)),
            unk_token=model.pieces[unknown].text,
            fuse_unk=True,
            byte_fallback=model.byte_fallback,
        )
    else:
        scores = [(piece.text, piece.score) for piece in model.pieces]
        core = models.Unigram(scores, unk_id=unknown, byte_fallback=model.byte_fallback)
    steps: list[normalizers.Normalizer] = []
    if model.charsmap:
        steps.append(normalizers.Precompiled(model.charsmap))
    if model.squeezed:
        steps += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    if model.prefix:
        steps.append(normalizers.Prepend(SPACE))
    rebuilt = Tokenizer(core)
    rebuilt.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", SPACE)])
    back: list[decoders.Decoder] = [
        decoders.Replace(SPACE, " "),
        decoders.ByteFallback(),
        decoders.Fuse(),
    ]
    if model.prefix:
        back.append(decoders.Strip(" ", 1, 0))
    rebuilt.decoder = decoders.Sequence(back)
    rebuilt.add_tokens(
        [
            AddedToken(piece.text, normalized=False, special=False)
            for piece in model.pieces
            if piece.kind == _USER_DEFINED
        ]
    )
    return rebuilt


def _merges(pieces: list[_Piece]) -> Iterator[tuple[str, str]]:
    """Which two pieces become one, the most wanted first: what scores stand for in a model."""
    ids = {piece.text: at for at, piece in enumerate(pieces) if piece.kind == _NORMAL}
    for text in sorted(ids, key=lambda text: (-pieces[ids[text]].score, ids[text])):
        halves = ((text[:at], text[at:]) for at in range(1, len(text)))
        known = [pair for pair in halves if pair[0] in ids and pair[1] in ids]
        yield from sorted(known, key=lambda pair: (ids[pair[0]], ids[pair[1]]))


def _parsed(content: bytes) -> _Model:
    """The fields that are needed, by their numbers in SentencePiece's own description."""
    pieces: list[_Piece] = []
    trainer: dict[int, _Value] = {}
    normalizer: dict[int, _Value] = {}
    for number, value in _fields(content):
        if number == 1:
            piece = dict(_fields(_as_bytes(value)))
            (score,) = struct.unpack("<f", _as_bytes(piece.get(2, bytes(4))))
            text = _as_bytes(piece[1]).decode()
            pieces.append(_Piece(text, score, _as_int(piece.get(3, _NORMAL))))
        elif number == 2:
            trainer = dict(_fields(_as_bytes(value)))
        elif number == 3:
            normalizer = dict(_fields(_as_bytes(value)))
    return _Model(
        pieces=pieces,
        kind=_as_int(trainer.get(3, _UNIGRAM)),
        byte_fallback=bool(trainer.get(35, False)),
        begin=_as_int(trainer.get(41, 1)),
        end=_as_int(trainer.get(42, 2)),
        charsmap=_as_bytes(normalizer.get(2, b"")),
        prefix=bool(normalizer.get(3, True)),
        squeezed=bool(normalizer.get(4, True)),
    )


def _fields(content: bytes) -> Iterator[tuple[int, _Value]]:
    """The fields of a protocol buffer's message."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        match key & 7:
            case 0:
                value, at = _varint(content, at)
                # Negative numbers are written as if they were 64 bits long.
                yield key >> 3, value - (1 << 64) if value >> 63 else value
            case 2:
                length, at = _varint(content, at)
                if at + length > len(content):
                    raise ValueError("it ends too early")
                yield key >> 3, content[at : at + length]
                at += length
            case 1 | 5 as kind:
                length = 8 if kind == 1 else 4
                yield key >> 3, content[at : at + length]
                at += length
            case kind:
                raise ValueError(f"a field of the unknown type {kind}")


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _as_bytes(value: _Value) -> bytes:
    if isinstance(value, int):
        raise TypeError("a number where text should be")
    return value


def _as_int(value: _Value) -> int:
    if isinstance(value, bytes):
        raise TypeError("text where a number should be")
    return value
