"""Mounts of a session: the image's root file system with folders of its own. `confine` calls it as `view_mounts`."""

from __future__ import annotations

import ctypes
import os

try:
    # the name that it has in the archive
    import plain_mounts as mounts  # type: ignore[import-not-found]
except ImportError:
    from formulacode_dagster.building.engines import view_mounts as mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEPT = mounts.MS_NODEV | mounts.MS_NOEXEC | mounts.MS_NOSUID
"""Flags that a machine's own mounts may be locked with: they have to be named again."""


def lay_view(libc: ctypes.CDLL, view: dict[str, Any]) -> None:
    """Make the root of *view*, with its folders over it, the only files of this mount namespace; raises OSError."""
    root: str = view["root"]
    flags = mounts.MS_NOSUID | mounts.MS_NODEV
    mounts.must(libc.mount(b"none", b"/", None, mounts.MS_REC | mounts.MS_PRIVATE, None), "mounts cannot be private")
    mounts.must(libc.mount(root.encode(), root.encode(), None, mounts.MS_BIND, None), f"{root} cannot be mounted")
    memory = f"mode=1777,size={view['memory_bytes']}".encode()
    mounts.must(
        libc.mount(b"tmpfs", f"{root}/dev".encode(), b"tmpfs", flags, b"mode=755,size=1m"), "no /dev allowed here"
    )
    for name in mounts.DEVICES:
        mounts.write(f"{root}/dev/{name}", "")
        place = f"{root}/dev/{name}".encode()
        mounts.must(
            libc.mount(f"/dev/{name}".encode(), place, None, mounts.MS_BIND, None), f"/dev/{name} cannot be mounted"
        )
    os.mkdir(f"{root}/dev/shm")
    shared = f"{root}/dev/shm".encode()
    mounts.must(libc.mount(b"tmpfs", shared, b"tmpfs", flags, memory), "no /dev/shm allowed here")
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{target}", f"{root}/dev/{name}")
    proc = f"{root}/proc".encode()
    mounts.must(libc.mount(b"proc", proc, b"proc", flags | mounts.MS_NOEXEC, None), "no /proc of its own allowed here")
    if os.path.isdir("/sys/devices/system"):
        # numbers of cores and caches
        mounts.mount(libc, "/sys/devices/system", f"{root}/sys/devices/system", readonly=True)
    for source, inside, writable in view["binds"]:
        mounts.mount(libc, source, root + inside, readonly=not writable)
    os.chdir(root)
    mounts.must(libc.syscall(mounts.PIVOT_ROOT[os.uname().machine], b".", b"."), "the root cannot be replaced")
    mounts.must(libc.umount2(b".", mounts.MNT_DETACH), "the old root stays")
    os.chdir("/")
    kept = os.statvfs("/").f_flag & KEPT
    mounts.must(
        libc.mount(None, b"/", None, mounts.MS_REMOUNT | mounts.MS_BIND | mounts.MS_RDONLY | kept, None),
        "the root stays writable",
    )
