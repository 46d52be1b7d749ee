"""Error pages: a server's HTML answer that was saved under the name of the file asked for."""

import re
from io import BufferedReader

from factory.errors import BadFile

LOOKED_AT = 2**11

_PAGE = re.compile(
    rb"(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype\s+html|html[\s>])",
    re.IGNORECASE | re.DOTALL,
)


def refuse_page(stream: BufferedReader, name: str, wanted: str) -> None:
    """End with an error if the stream begins as a page does; nothing of it is consumed.

    Raises:
        BadFile: it does.
    """
    if is_page(stream.peek(LOOKED_AT)[:LOOKED_AT]):
        raise BadFile(
            f"{name}: is not {wanted} but an HTML page, as a server sends to report an error. "
            "Fetch it again."
        )


def is_page(beginning: bytes) -> bool:
    """Whether bytes begin as an HTML page does."""
    return _PAGE.match(beginning) is not None
