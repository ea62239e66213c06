"""Mounts of a view: the files that a command confined by `confine` has. Imports little, as that does."""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/sys/devices/system")
SYSTEM_SETTINGS = (
    *("alternatives", "ca-certificates", "debian_version", "fonts", "gai.conf", "host.conf"),
    *("hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "locale.alias"),
    *("locale.conf", "magic", "mime.types", "nsswitch.conf", "os-release", "pki/ca-trust"),
    *("pki/tls/certs", "protocols", "resolv.conf", "services", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone"),
)
"""Files below /etc that programs need and that hold no secrets."""
DEVICES = ("null", "zero", "full", "random", "urandom")
ONLINE = "/sys/devices/system/cpu/online"
"""What the C library, and with it `os.cpu_count`, counts processors by."""


def lay_view(libc: ctypes.CDLL, view: dict[str, Any]) -> None:
    """Make the folders of *view* and the system's the only files of this mount namespace; raises OSError."""
    # links lead elsewhere once the root is another one
    system = [(path, followed(path)) for path in (*SYSTEM, *(f"/etc/{name}" for name in SYSTEM_SETTINGS))]
    mounts = [(path, source, True) for path, source in (*system, *view["readonly"])]
    mounts += [(path, path, False) for path in (*(f"/dev/{name}" for name in DEVICES), *view["writable"])]
    must(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "mounts cannot be private")
    flags = MS_NOSUID | MS_NODEV
    must(libc.mount(b"tmpfs", b"/tmp", b"tmpfs", flags, b"mode=755,size=1m"), "no file system in memory allowed here")
    os.chdir("/tmp")  # noqa: S108 - a folder that every machine has
    os.mkdir("old")
    must(libc.syscall(PIVOT_ROOT[os.uname().machine], b".", b"old"), "the root cannot be replaced")
    os.chdir("/")
    memory = f"mode=1777,size={view['memory_bytes']}".encode()
    for place, kind, more, options in (
        ("/tmp", b"tmpfs", 0, memory),  # noqa: S108 - the view's own
        ("/dev/shm", b"tmpfs", 0, memory),  # noqa: S108
        ("/proc", b"proc", MS_NOEXEC, None),
    ):
        os.makedirs(place)
        must(libc.mount(kind, place.encode(), kind, flags | more, options), f"no {place} of its own allowed here")
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{target}", f"/dev/{name}")
    os.mkdir("/etc")
    user, group, home = view["user"], view["group"], view["home"]
    write("/etc/passwd", f"root:x:0:0::/:/bin/sh\nformulacode:x:{user}:{group}::{home}:/bin/sh\n")
    write("/etc/group", f"root:x:0:\nformulacode:x:{group}:\n")
    for path, source, readonly in mounts:
        bind(libc, path, source, readonly)
    if os.path.exists(ONLINE):
        write("/cores", f"0-{view['cores'] - 1}\n")
        mount(libc, "/cores", ONLINE, readonly=True)
    must(libc.umount2(b"/old", MNT_DETACH), "the old root stays")
    os.rmdir("/old")
    must(libc.mount(None, b"/", None, MS_REMOUNT | MS_BIND | MS_RDONLY | flags, None), "the root stays writable")


def followed(path: str) -> str:
    """Where *path* is, links followed; asking for each of its folders would take as long as the mounts."""
    is_linked = os.path.islink(path) or os.path.islink(os.path.dirname(path))
    return os.path.realpath(path) if is_linked else path


def bind(libc: ctypes.CDLL, path: str, source: str, readonly: bool) -> None:
    """Lay *source* of the old root into the new one as *path*; it is fine if there is none."""
    if os.path.isdir(f"/old{source}"):
        os.makedirs(path, exist_ok=True)
    elif not os.path.exists(f"/old{source}"):
        return
    elif not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write(path, "")
    mount(libc, f"/old{source}", path, readonly)


def mount(libc: ctypes.CDLL, source: str, path: str, readonly: bool) -> None:
    """Lay *source* over the file or folder *path*, which exists."""
    place = path.encode()
    must(libc.mount(source.encode(), place, None, MS_BIND | MS_REC, None), f"{path} cannot be mounted")
    if readonly:
        # those of the machine are locked, and have to be named again
        kept = os.statvfs(path).f_flag & (MS_NODEV | MS_NOEXEC)
        flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | kept
        must(libc.mount(None, place, None, flags, None), f"{path} stays writable")


def write(path: str, text: str) -> None:
    """Write a file."""
    with open(path, "w") as file:
        file.write(text)


def must(result: int, what: str) -> None:
    """Raise PermissionError with *what* if a call failed."""
    if result != 0:
        raise PermissionError(ctypes.get_errno(), what)
