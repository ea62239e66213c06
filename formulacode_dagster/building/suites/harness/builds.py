"""Several builds of one package: their shared objects are stored, and copied to their import path on request.

Builds differ only in their layout: padding linked before them moves code and data. Our own linkers, which the compiler
finds before others, add it and store their arguments; a further layout then takes only linking.
"""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import struct
import subprocess
import sysconfig
import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answers import Emit

LOADED, NOTE, EMPTY = 2, 7, 8
"""Sections in ELF: the flag of those in memory, the types of notes and of those without content."""
LINKERS = ("ld", "ld.bfd", "ld.gold", "ld.lld", "ld.mold")
PADDED = ("text", "data", "bss")
PADDING = "".join(f".{name}\n.globl fc_{name}\n.hidden fc_{name}\nfc_{name}:\n.skip {{{name}}}\n" for name in PADDED)
PADDING += '.section .note.GNU-stack,"",%progbits\n'
WANTED = [part for name in PADDED for part in ("-u", f"fc_{name}")]
"""Arguments of a linker: without them one that collects garbage, as rustc has it do, drops the padding."""
LINK_SECONDS = 120
# Arguments are stored one per line; files of the build's temporary tree are copied.
LINKER = """#!/bin/sh
case " $* " in
*" -shared "*)
    kept=$(mktemp -d "{folder}/link-XXXXXX")
    printf '%s\\n' "{linker}" >"$kept/arguments"
    number=0
    for argument in "$@"; do
        number=$((number + 1))
        name= file=$argument
        case $argument in
        --version-script=*) name=--version-script= file=${{argument#*=}} ;;
        esac
        case $file in
        /usr/* | /lib*) ;;
        *)
            if [ -f "$file" ] && cp "$file" "$kept/$number-${{file##*/}}"; then
                argument=$name$kept/$number-${{file##*/}}
            fi
            ;;
        esac
        printf '%s\\n' "$argument" >>"$kept/arguments"
    done
    set -- {wanted} "{folder}/padding.o" "$@"
    ;;
esac
exec "{linker}" "$@"
"""


def vary(request: dict[str, Any], emit: Emit) -> None:
    """Make a folder of linkers that move linked code and data by `code` and `data` bytes; none without an assembler.

    With a `name` it is that folder, in place of an earlier one: a cache of the compiler depends on where it is.
    """
    if "name" in request:
        folder = os.path.join(tempfile.gettempdir(), request["name"])
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder, 0o700)
    else:
        folder = tempfile.mkdtemp(prefix="fc-linkers-")
    if not assembled(folder, request):
        emit(event="linkers", folder="")
        return
    for name in LINKERS:
        linker = shutil.which(name)
        if linker is not None:
            path = os.path.join(folder, name)
            with open(path, "w") as file:
                file.write(LINKER.format(folder=folder, linker=linker, wanted=" ".join(WANTED)))
            os.chmod(path, 0o700)
    emit(event="linkers", folder=folder)


def keep(_request: dict[str, Any], emit: Emit) -> None:
    """Store the shared objects of the last installed package, and report their hash; empty without any."""
    emit(event="kept", **kept(installed_objects()))


def relink(request: dict[str, Any], emit: Emit) -> None:
    """Link again what `linkers` stored, moved by `code` and `data` bytes, and store the result as a build.

    Nothing is emitted if that is impossible, or if relinking with the build's own padding does not reproduce the
    installed objects; that is tried once, before the first other layout.
    """
    folder, objects = request["linkers"], installed_objects()
    links = glob.glob(os.path.join(glob.escape(folder), "link-*"))
    outputs = [os.path.basename(output(link)) for link in links]
    by_name = dict(zip(outputs, links))  # noqa: B905 - CPython 3.7
    if not objects or any(outputs.count(os.path.basename(path)) != 1 for path in objects):
        return
    moved = tempfile.mkdtemp(prefix="fc-moved-")
    if not assembled(moved, request):
        return
    sources = []
    shown = os.path.join(folder, "shown")
    is_shown = os.path.exists(shown)
    for path in objects:
        link, into = by_name[os.path.basename(path)], os.path.join(moved, os.path.basename(path))
        # with the build's own padding, any other change to the object would show
        if not is_shown and not (linked(link, folder, into) and hash_of(into) == hash_of(path)):
            return
        if not linked(link, moved, into):
            return
        sources.append(into)
    open(shown, "w").close()
    emit(event="kept", **kept(objects, sources))
    shutil.rmtree(moved)


def assembled(folder: str, request: dict[str, Any]) -> bool:
    """Return True if there is now a `padding.o` in *folder*, of `code` and `data` bytes."""
    code, data = int(request["code"]), int(request["data"])
    source = PADDING.format(text=code, data=data, bss=data)
    command = ["as", "-o", os.path.join(folder, "padding.o"), "-"]
    try:
        subprocess.run(command, input=source.encode(), check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def linked(link: str, padding: str, into: str) -> bool:
    """Return True if the stored folder *link* could be linked with the padding of another, *into* a file."""
    linker, *arguments = arguments_of(link)
    arguments[arguments.index("-o") + 1] = into
    command = [linker, *WANTED, os.path.join(padding, "padding.o"), *arguments]
    try:
        done = subprocess.run(command, stderr=subprocess.DEVNULL, timeout=LINK_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def arguments_of(link: str) -> list[str]:
    """The linker and its arguments, as they were kept."""
    with open(os.path.join(link, "arguments")) as file:
        return file.read().split("\n")[:-1]


def output(link: str) -> str:
    """Return the linked path; empty if it is unknown."""
    arguments = arguments_of(link)
    return arguments[arguments.index("-o") + 1] if "-o" in arguments[:-1] else ""


def kept(objects: list[str], sources: list[str] | None = None) -> dict[str, object]:
    """A folder that keeps *sources* for the places of *objects*, which they are themselves if none are given."""
    folder = tempfile.mkdtemp(prefix="fc-build-")
    digest = hashlib.sha256()
    for number, (path, source) in enumerate(zip(objects, sources or objects)):  # noqa: B905 - CPython 3.7
        shutil.copy2(source, os.path.join(folder, str(number)))
        digest.update(f"{os.path.basename(path)}\0".encode() + hash_of(source))
    with open(os.path.join(folder, "paths"), "w") as file:
        file.write("\n".join(objects))
    return {"folder": folder, "objects": digest.hexdigest() if objects else ""}


def hash_of(path: str) -> bytes:
    """Return a hash of the loaded part of the file."""
    with open(path, "rb") as file:
        return loaded(file.read())


def loaded(content: bytes) -> bytes:
    """Return a hash of the loaded part of a shared object, and its addresses: neither debug information nor the build's
    id.
    """
    digest = hashlib.sha256()
    if content[:5] != b"\x7fELF\x02":
        return hashlib.sha256(content).digest()
    order = "<" if content[5] == 1 else ">"
    start = struct.unpack_from(f"{order}Q", content, 0x28)[0]
    size, count = struct.unpack_from(f"{order}HH", content, 0x3A)
    for number in range(count):
        _, kind, flags, address, offset, length = struct.unpack_from(f"{order}IIQQQQ", content, start + number * size)
        if flags & LOADED and kind != NOTE:
            digest.update(struct.pack("QQ", address, length))
            digest.update(b"" if kind == EMPTY else content[offset : offset + length])
    return digest.digest()


def lay(folder: str) -> None:
    """Copy the shared objects stored in *folder* to their places in the package."""
    with open(os.path.join(folder, "paths")) as file:
        paths = file.read().split("\n")
    for number, path in enumerate(paths):
        if path:
            # a new file in the place of the old: other processes may still have that one mapped
            shutil.copy2(os.path.join(folder, str(number)), f"{path}.fc")
            os.replace(f"{path}.fc", path)


def installed_objects() -> list[str]:
    """The shared objects that the distribution which was installed last lists as its own."""
    records = []
    for place in {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]}:
        records += glob.glob(os.path.join(glob.escape(place), "*.dist-info", "RECORD"))
    if not records:
        return []
    newest = max(records, key=os.path.getmtime)
    root = os.path.dirname(os.path.dirname(newest))
    with open(newest) as file:
        listed = [line.rsplit(",", 2)[0].strip('"') for line in file.read().split("\n") if line]
    objects = {os.path.normpath(os.path.join(root, path)) for path in listed if ".so" in os.path.basename(path)}
    return sorted(path for path in objects if os.path.isfile(path))
