"""Opaque node ids in GitHub's present form: a type prefix, then base64 of MessagePack integers."""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from dataclasses import dataclass
from enum import StrEnum

MOST_NUMBERS = 3

# The largest prime below 2³¹ (GraphQL's Int), and a stride that scatters neighbouring numbers.
_MODULUS = 2**31 - 1
_STRIDE = 48_271


class Kind(StrEnum):
    """Prefixes of the node types that are served."""

    REPOSITORY = "R"
    PULL_REQUEST = "PR"
    ISSUE = "I"
    COMMENT = "IC"


@dataclass(frozen=True)
class NodeId:
    """A decoded node id."""

    kind: Kind
    numbers: tuple[int, ...]


def node_id(kind: Kind, *numbers: int) -> str:
    """Return the id of a node named by *numbers* (each below 2³²): repository id first, if it has one."""
    packed = bytes([0x91 + len(numbers), 0]) + b"".join(b"\xce" + struct.pack(">I", number) for number in numbers)
    return f"{kind}_{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"


def read_node_id(text: str) -> NodeId | None:
    """Return the node that *text* names, None if it is no node id of ours."""
    prefix, _, encoded = text.partition("_")
    try:
        kind = Kind(prefix)
        packed = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except (ValueError, binascii.Error):
        return None
    count = len(packed[2:]) // 5
    if not 1 <= count <= MOST_NUMBERS or len(packed) != 2 + 5 * count or packed[:2] != bytes([0x91 + count, 0]):
        return None
    return NodeId(kind, tuple(struct.unpack(">I", packed[3 + 5 * i : 7 + 5 * i])[0] for i in range(count)))


def stable_id(*parts: object) -> int:
    """Return a database id that depends only on *parts*: positive, below 2³⁰."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") % (2**30 - 1) + 1


def thread_id(repository_id: int, number: int) -> int:
    """Database id of issue or pull request *number*; `thread_number` is its inverse."""
    return (stable_id("threads", repository_id) + number * _STRIDE) % _MODULUS


def thread_number(repository_id: int, database_id: int) -> int:
    """The number that `thread_id` was made of."""
    return (database_id - stable_id("threads", repository_id)) * pow(_STRIDE, -1, _MODULUS) % _MODULUS
