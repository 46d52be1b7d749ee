"""Addresses of servers, as somebody wrote them down: whether a client can connect to one."""

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

_LABEL = r"[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")
_MAX_HOST_CHARACTERS = 253


def parted(address: str) -> SplitResult:
    """The parts of an address.

    Raises:
        ValueError: it holds what no address can; a scheme and a host may be missing.
    """
    if not address.isascii() or not address.isprintable() or " " in address:
        raise ValueError(
            "write it without blanks, line breaks and letters beyond ASCII; a name in another "
            "alphabet begins with xn--"
        )
    try:
        return urlsplit(address)
    except ValueError:
        raise ValueError("write an address of version 6 in brackets: https://[::1]:6443") from None


def check(parts: SplitResult) -> None:
    """Check that a client can connect there.

    Raises:
        ValueError: its host, its port or its path cannot be; says what to write.
    """
    if not _is_host(parts.hostname or "", bracketed="[" in parts.netloc):
        raise ValueError("its host is no name and no address: write HOST, 10.0.0.1 or [::1]")
    if not _is_port(parts):
        raise ValueError("its port is none: write a number from 1 to 65535, or no colon")
    if {".", ".."} & set(parts.path.split("/")):
        raise ValueError("write its path without . and .., so that it says where it is")


def _is_host(name: str, *, bracketed: bool) -> bool:
    numbers = name.replace(".", "").isdigit()
    if not bracketed and not numbers:
        return len(name) <= _MAX_HOST_CHARACTERS and _HOST.fullmatch(name) is not None
    try:
        ipaddress.IPv6Address(name) if bracketed else ipaddress.IPv4Address(name)
    except ValueError:
        return False
    return True


def _is_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0 and not parts.netloc.endswith(":")
    except ValueError:
        return False
