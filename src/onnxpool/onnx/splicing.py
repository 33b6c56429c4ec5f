"""
Replace parts of a serialised protobuf message, so that all other bytes stay as they are.

Parsing a message and writing it again would change bytes: other writers order fields differently, and repeat or omit
default values.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .protos import ModelError

Path = tuple[tuple[int, int], ...]  # fields, outermost message first: number, and position among fields with it
FIXED = {1: 8, 5: 4}  # sizes of values by wire type
VARINT, LENGTH = 0, 2  # the other wire types


def step(kind: Any, field: str, place: int = 0) -> tuple[int, int]:
    """A step of a path: a field of messages of this kind, and a position among items of the field."""
    return kind.DESCRIPTOR.fields_by_name[field].number, place


def varint(number: int) -> bytes:
    """A number in groups of 7 bits, the lowest first."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number at a position, and the position behind it."""
    number = shift = 0
    while True:
        group = data[at]
        number |= (group & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if group < 0x80:
            return number, at


def fields(data: memoryview) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a message: number, and where the field, its value and the next field begin."""
    at = 0
    while at < len(data):
        tag, value = read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            _, end = read_varint(data, value)
        elif kind == LENGTH:
            size, value = read_varint(data, value)
            end = value + size
        elif kind in FIXED:
            end = value + FIXED[kind]
        else:
            raise ModelError(f"the model has a field of wire type {kind}, which cannot be copied; "
                             f"save it again with onnx.save")
        yield number, at, value, end
        at = end


def part(data: memoryview, path: Path) -> memoryview | None:
    """The serialised message at a path. None if it is not there, for example because a message is stored in several
    pieces."""
    for wanted in path:
        places: Counter[int] = Counter()
        for number, _, value, end in fields(data):
            if (number, places[number]) == wanted:
                data = data[value:end]
                break
            places[number] += 1
        else:
            return None
    return data


def spliced(data: memoryview, edits: Mapping[Path, Sequence[bytes]]) -> bytes:
    """
    A message with some of its parts replaced.

    Parameters
    ----------
    data : memoryview
        The serialised message.
    edits : mapping of tuple to sequence of bytes
        Paths of replaced parts, with the serialised messages that replace each part.
    """
    found: list[bytes | memoryview] = []
    places: Counter[int] = Counter()
    for number, start, value, end in fields(data):
        here = number, places[number]
        places[number] += 1
        inner = {path[1:]: parts for path, parts in edits.items() if path[0] == here}
        if not inner:
            found.append(data[start:end])
            continue
        parts = inner[()] if () in inner else [spliced(data[value:end], inner)]
        for part in parts:
            found += varint(number << 3 | LENGTH), varint(len(part)), part
    return b"".join(found)
