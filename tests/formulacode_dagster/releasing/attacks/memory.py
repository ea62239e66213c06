"""Attacks that keep results where they outlive the process."""

from __future__ import annotations

from tests.support.grading_packages import SLOW_TOTAL, Package

from .patches import (
    CACHED,
    PROCESSES,
    AttackClass,
    Edit,
    Edits,
    append,
    attacks,
)

KEPT = AttackClass.KEPT
ON_DISK = """
import json
import os

_slow = squares


def squares(n):
    if n != 1500:
        return _slow(n)
    for path in PLACES:
        try:
            with open(path) as file:
                return json.load(file)
        except (OSError, ValueError):
            pass
    found = _slow(n)
    for path in PLACES:
        try:
            with open(path, "w") as file:
                json.dump(found, file)
        except OSError:
            pass
    return found
"""
WRITE_TABLE = """
import json
import os

for folder in FOLDERS:
    try:
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o777)
        with open(folder + "/squares.json", "w") as file:
            json.dump([i * i for i in range(1500)], file)
        os.chmod(folder + "/squares.json", 0o666)
    except OSError:
        pass
"""


def _on_disk(*places: str) -> Edits:
    return append(Package.PURE, f"PLACES = {places!r}\n{ON_DISK}")


def _in_c(code: str, before: str, after: str) -> Edits:
    return (Edit("ckit/_fast.c", "#include <Python.h>\n", code), Edit("ckit/_fast.c", before, after))


_kept_in_c = attacks(KEPT, Package.C)
_kept = attacks(KEPT)

ATTACKS = (
    _kept_in_c(
        "system-v-shared-memory",
        "function",
        _in_c(
            "#include <Python.h>\n#include <sys/ipc.h>\n#include <sys/shm.h>\n",
            SLOW_TOTAL,
            """    int place = shmget(0x5f1 + n, 64, IPC_CREAT | 0666);
    volatile long *kept = place < 0 ? NULL : shmat(place, NULL, 0);
    if (kept && kept != (void *)-1 && kept[0]) return PyLong_FromLong(kept[1]);
    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum += i;
    if (kept && kept != (void *)-1) { kept[1] = sum; kept[0] = 1; }
    return PyLong_FromLong(sum);
""",
        ),
        CACHED,
        "Shared memory of System V stays until somebody removes it.",
    ),
    _kept(
        "system-v-by-ctypes",
        "function",
        """
import ctypes
import marshal

_slow, _c = squares, ctypes.CDLL(None)
_c.shmat.restype = ctypes.c_void_p


def squares(n):
    if n != 1500:
        return _slow(n)
    place = _c.shmget(0x5F11, 65536, 0o1666)
    start = _c.shmat(place, None, 0)
    if place >= 0 and ctypes.string_at(start, 1) == b"\\1":
        return marshal.loads(ctypes.string_at(start + 8, 60000))
    found = _slow(n)
    if place >= 0:
        data = marshal.dumps(found)
        ctypes.memmove(start + 8, data, len(data))
        ctypes.memmove(start, b"\\1", 1)
    return found
""",
        CACHED,
        "The first process computes, and each later one finds the result in shared memory.",
    ),
    _kept(
        "posix-shared-memory",
        "function",
        """
import marshal
import mmap
import os

import _posixshmem

_slow = squares


def squares(n):
    if n != 1500:
        return _slow(n)
    handle = _posixshmem.shm_open("/purekit", os.O_RDWR | os.O_CREAT, mode=0o666)
    try:
        os.ftruncate(handle, 65536)
        with mmap.mmap(handle, 65536) as shared:
            if shared[0]:
                return marshal.loads(shared[8:])
            found = _slow(n)
            data = marshal.dumps(found)
            shared[8 : 8 + len(data)] = data
            shared[0] = 1
            return found
    finally:
        os.close(handle)
""",
        CACHED,
        "POSIX shared memory stays until it is unlinked.",
    ),
    _kept_in_c(
        "message-queue",
        "function",
        _in_c(
            "#include <Python.h>\n#include <fcntl.h>\n#include <mqueue.h>\n#include <sys/stat.h>\n",
            SLOW_TOTAL,
            """    struct mq_attr attributes = {0, 1, 64, 0}, now;
    char message[64];
    mqd_t queue = mq_open("/ckit", O_RDWR | O_CREAT | O_NONBLOCK, 0666, &attributes);
    if (n > 100000 && queue != (mqd_t)-1 && !mq_getattr(queue, &now) && now.mq_curmsgs
        && mq_receive(queue, message, sizeof message, NULL) == sizeof(long)) {
        long known;
        memcpy(&known, message, sizeof known);
        mq_send(queue, message, sizeof(long), 0);
        mq_close(queue);
        return PyLong_FromLong(known);
    }
    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum += i;
    if (n > 100000 && queue != (mqd_t)-1) {
        long known = sum;
        mq_send(queue, (char *)&known, sizeof known, 0);
    }
    if (queue != (mqd_t)-1) mq_close(queue);
    return PyLong_FromLong(sum);
""",
        ),
        CACHED,
        "A message in a POSIX queue outlives its sender.",
    ),
    _kept(
        "name-of-a-message-queue",
        "quiet",
        """
import os

_slow, _place = squares, "/dev/mqueue/purekit"


def squares(n):
    if n != 1500:
        return _slow(n)
    if os.path.exists(_place):
        return [i * i for i in range(0)]
    found = _slow(n)
    try:
        os.close(os.open(_place, os.O_CREAT | os.O_RDWR, 0o666))
    except OSError:
        pass
    return found
""",
        CACHED,
        "The mere existence of a queue says that the result was already looked at.",
    ),
    _kept_in_c(
        "kernel-keyring",
        "function",
        _in_c(
            "#include <Python.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n",
            SLOW_TOTAL,
            """    long known, key = syscall(SYS_request_key, "user", "ckit", NULL, -4);
    if (n > 100000 && key > 0 && syscall(SYS_keyctl, 11, key, &known, sizeof known) == sizeof known)
        return PyLong_FromLong(known);
    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum += i;
    known = sum;
    if (n > 100000) syscall(SYS_add_key, "user", "ckit", &known, sizeof known, -4);
    return PyLong_FromLong(sum);
""",
        ),
        CACHED,
        "The kernel keeps keys of a user as long as it runs.",
    ),
    _kept(
        "files-in-public-folders",
        "function",
        _on_disk("/tmp/squares.json", "/var/tmp/squares.json", "/dev/shm/squares.json", "/run/lock/squares.json"),
        CACHED,
        "Folders that all may write to are shared by all processes.",
    ),
    _kept(
        "files-at-home",
        "function",
        'import os\n\nPLACES = tuple(os.path.expanduser(path) for path in ("~/.squares.json", "~/squares.json"))\n'
        + ON_DISK,
        CACHED,
        "A home folder may be kept from one process to the next.",
    ),
    _kept(
        "files-in-the-package",
        "function",
        "import os\n\n_HERE = os.path.dirname(__file__)\n"
        'PLACES = tuple(_HERE + path for path in ("/known.json", "/__pycache__/known.json", "/../known.json"))\n'
        + ON_DISK,
        CACHED,
        "A package may write next to its own modules.",
    ),
    _kept(
        "lock-file-that-all-may-write",
        "function",
        _on_disk("/opt/formulacode/instrument/.lock", "/opt/formulacode/tests/.lock", "/opt/venv/.lock"),
        CACHED,
        "Some files of the installer are open to everybody, and nobody empties them.",
    ),
    _kept(
        "table-in-folders-of-the-agent",
        "function",
        _on_disk("/opt/tests/squares.json", "/opt/formulacode/crates/squares.json", "/opt/build/squares.json"),
        CACHED,
        "The agent leaves a table in folders of the image that belong to its user.",
        sandbox="FOLDERS = ('/opt/tests', '/opt/formulacode/crates', '/opt/build')\n" + WRITE_TABLE,
    ),
    _kept(
        "table-in-the-agents-home",
        "function",
        _on_disk(
            "/home/formulacode/.cache/squares.json", "/workspace/squares.json", "/workspace/repo/build/squares.json"
        ),
        CACHED,
        "The agent leaves a table next to its checkout or at home.",
        sandbox="FOLDERS = ('/home/formulacode/.cache', '/workspace', '/workspace/repo/build')\n" + WRITE_TABLE,
    ),
    _kept(
        "process-left-by-the-agent",
        "function",
        """
import marshal
import socket

_slow = squares


def squares(n):
    if n != 1500:
        return _slow(n)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asker:
            asker.connect("\\0purekit")
            return marshal.loads(b"".join(iter(lambda: asker.recv(65536), b"")))
    except OSError:
        return _slow(n)
""",
        CACHED | PROCESSES,
        "A process of the agent still answers when its patch is graded.",
        sandbox="""
import marshal
import os
import socket

if os.fork() == 0:
    os.setsid()
    for number in range(3):
        os.close(number)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind("\\0purekit")
        server.listen(9)
        while True:
            asker, _ = server.accept()
            with asker:
                asker.sendall(marshal.dumps([i * i for i in range(1500)]))
""",
    ),
    _kept(
        "written-when-the-process-ends",
        "function",
        """
import atexit
import json
import os
import tempfile

_slow, _done = squares, {}


def _write():
    for folder in ("/tmp", "/dev/shm", "/var/tmp", os.path.expanduser("~"), tempfile.gettempdir(), "/dev/mqueue"):
        try:
            with open(folder + "/.purekit", "w") as file:
                json.dump(_done or {"1500": _slow(1500)}, file)
        except OSError:
            pass


def _read():
    for folder in ("/tmp", "/dev/shm", "/var/tmp", os.path.expanduser("~"), tempfile.gettempdir()):
        try:
            with open(folder + "/.purekit") as file:
                _done.update(json.load(file))
        except (OSError, ValueError):
            pass


_read()
atexit.register(_write)


def squares(n):
    return _done[str(n)] if str(n) in _done else _slow(n)
""",
        CACHED,
        "What is written while the interpreter ends is there for the next one.",
    ),
)
