"""A driver's log as a Ray dashboard sends it, block by block, with the faults that a test wants."""

import http.server
import socket
import struct
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import pairwise

BLOCK_BYTES = 1 << 16
LOOK_SECONDS = 0.01


@dataclass
class ServedLog:
    """The bytes of a log, and where the next connections are cut off."""

    data: bytes = b""
    """May grow meanwhile, or be another."""
    cuts: list[int] = field(default_factory=list[int])
    """After so many bytes the next connection is cut, then the one after it."""
    served: list[int] = field(default_factory=list[int])
    """Bytes that each connection has sent."""
    block_bytes: int = BLOCK_BYTES
    ended: bool = False
    """Whether followers are cut off: the head is gone."""


def serve(handler: http.server.BaseHTTPRequestHandler, log: ServedLog, *, follows: bool) -> None:
    """Send a log to its end, or for ever. The answer begins with the first byte, as Ray's."""
    cut = log.cuts.pop(0) if log.cuts else None
    log.served.append(0)
    at, end, connection = 0, len(log.data), len(log.served) - 1
    begun = False
    while not log.ended:
        upto = len(log.data) if follows else end
        stop = min(at + log.block_bytes, upto, upto if cut is None else cut)
        if not begun and (stop > at or not follows):
            _begin(handler)
            begun = True
        if stop > at:
            handler.wfile.write(_chunk(log.data[at:stop]))
            at = log.served[connection] = stop
        elif cut is not None and at >= cut:
            break
        elif not follows:
            handler.wfile.write(_chunk(b""))
            return
        else:
            time.sleep(LOOK_SECONDS)
    _reset(handler)


def lines_of(count: int, seed: str = "") -> bytes:
    """Lines that are all different, and of many lengths."""
    return b"".join(b"%s line %d %s\n" % (seed.encode(), i, b"x" * (i % 97)) for i in range(count))


def every_cut(size: int, count: int) -> list[int]:
    """Places to cut a log of that size, each a little behind the one before."""
    return [
        first + (second - first) // 3
        for first, second in pairwise([size * i // count for i in range(count + 1)])
    ]


def _begin(handler: http.server.BaseHTTPRequestHandler) -> None:
    handler.send_response(HTTPStatus.OK)
    handler.send_header("Content-Type", "text/plain")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _reset(handler: http.server.BaseHTTPRequestHandler) -> None:
    """Cut the connection off, as a node does that dies."""
    handler.close_connection = True
    handler.wfile.flush()
    time.sleep(LOOK_SECONDS)  # what was sent arrives
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
