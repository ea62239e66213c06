"""Mounts of a session: the image's root file system with folders of its own. `confine` calls it as `view_mounts`."""

from __future__ import annotations

import ctypes
import os

from plain_mounts import (  # type: ignore[import-not-found]  # the name that `engines.view_mounts` has in the archive
    DEVICES,
    MNT_DETACH,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    PIVOT_ROOT,
    must,
    write,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEPT = MS_NODEV | MS_NOEXEC | MS_NOSUID
"""Flags that a machine's own mounts may be locked with: they have to be named again."""


def lay_view(libc: ctypes.CDLL, view: dict[str, Any]) -> None:
    """Make the root of *view*, with its folders over it, the only files of this mount namespace; raises OSError."""
    root: str = view["root"]
    flags = MS_NOSUID | MS_NODEV
    must(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "mounts cannot be private")
    must(libc.mount(root.encode(), root.encode(), None, MS_BIND, None), f"{root} cannot be mounted")
    memory = f"mode=1777,size={view['memory_bytes']}".encode()
    must(libc.mount(b"tmpfs", f"{root}/dev".encode(), b"tmpfs", flags, b"mode=755,size=1m"), "no /dev allowed here")
    for name in DEVICES:
        write(f"{root}/dev/{name}", "")
        place = f"{root}/dev/{name}".encode()
        must(libc.mount(f"/dev/{name}".encode(), place, None, MS_BIND, None), f"/dev/{name} cannot be mounted")
    os.mkdir(f"{root}/dev/shm")
    shared = f"{root}/dev/shm".encode()
    must(libc.mount(b"tmpfs", shared, b"tmpfs", flags, memory), "no /dev/shm allowed here")
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{target}", f"{root}/dev/{name}")
    proc = f"{root}/proc".encode()
    must(libc.mount(b"proc", proc, b"proc", flags | MS_NOEXEC, None), "no /proc of its own allowed here")
    if os.path.isdir("/sys/devices/system"):
        # numbers of cores and caches
        bind(libc, "/sys/devices/system", f"{root}/sys/devices/system", writable=False)
    for source, inside, writable in view["binds"]:
        bind(libc, source, root + inside, writable=writable)
    os.chdir(root)
    must(libc.syscall(PIVOT_ROOT[os.uname().machine], b".", b"."), "the root cannot be replaced")
    must(libc.umount2(b".", MNT_DETACH), "the old root stays")
    os.chdir("/")
    kept = os.statvfs("/").f_flag & KEPT
    must(libc.mount(None, b"/", None, MS_REMOUNT | MS_BIND | MS_RDONLY | kept, None), "the root stays writable")


def bind(libc: ctypes.CDLL, source: str, place: str, *, writable: bool) -> None:
    """Lay *source* over *place*, which exists."""
    must(libc.mount(source.encode(), place.encode(), None, MS_BIND | MS_REC, None), f"{place} cannot be mounted")
    if not writable:
        kept = os.statvfs(place).f_flag & KEPT
        flags = MS_REMOUNT | MS_BIND | MS_RDONLY | kept
        must(libc.mount(None, place.encode(), None, flags, None), f"{place} stays writable")
