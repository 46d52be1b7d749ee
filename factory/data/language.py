"""Languages: which one a text is written in, and of which texts it is asked.

Recognizing takes longer than everything else that is counted, so of large datasets it is done for
a sample. Who is in the sample depends on ids alone, never on the order or on the shard.
"""

import functools
import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

SAMPLED_ROWS = 50_000
CHARACTERS = 300
"""The beginning of a text that is looked at. More does not change what is found."""

CONFIDENCE = 0.3
"""Share of the probability that the best guess must have: four words have it, a name has not."""

UNDETERMINED = "und"
"""What ISO 639 calls a language that nobody can tell."""


def sampled(name: str, rows: int) -> bool:
    """Whether a sample of this id is asked, in a dataset of about so many rows."""
    if rows <= SAMPLED_ROWS:
        return True
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8]) * rows < SAMPLED_ROWS << 64


def beginning(texts: Iterable[str]) -> str:
    """The first characters of texts in a row."""
    found: list[str] = []
    left = CHARACTERS
    for text in texts:
        if left <= 0:
            break
        found.append(text[:left])
        left -= len(text)
    return " ".join(filter(None, found))


def language(text: str) -> str:
    """ISO 639-1 code of the language of a text, or `und`."""
    code, _confidence = _identifier().classify(text)
    return f"{code}"


@functools.cache
def _identifier() -> "LanguageIdentifier":
    import numpy as np
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    found = LanguageIdentifier.from_model_file(
        MODEL_FILE, norm_probs=True, min_confidence=CONFIDENCE
    )
    found.nb_ptc = found.nb_ptc.astype(np.float32)  # else every text converts what it needs of it
    return found
