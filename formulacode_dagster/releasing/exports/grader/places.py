"""The arms: each the sealed base with its change, built and installed from scratch, in a read-only folder."""

from __future__ import annotations

import base64
import contextlib
import os
import random
import re
import secrets
import shutil
import stat
import subprocess
import sysconfig
from typing import TYPE_CHECKING, Any

from .running import PUBLIC, Done, plain_environment, remove_tree, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SEALED = "/opt/formulacode/sealed"
"""The image's files from before an agent saw it, owned by root."""
GRADED = "/opt/formulacode/graded"
HARNESS = os.path.join(GRADED, "harness.pyz")
AGENT = "agent"
ARMS = ("base", "control", "oracle", AGENT)
USERS, USERS_OF_A_GRADING = range(20_000, 2**30), 2 * len(ARMS)
BUILD_FAILED_CHARACTERS = 3000
DIFF_SECONDS = 300.0
MOST_DIFF_BYTES = 64 * 2**20
MOST_BYTES = 1_000_000
MOST_NUMBERS, LONGEST_RUN = 500, 500
"""Limits of what a change may add to a file: numbers, in code or in texts, and characters in a row without a space.

More of either is a table, which may hold results.
"""
NUMBER = re.compile(rb"(?<![\w.])\d[\w.]*")
RUN = re.compile(rb"\S{%d,}" % LONGEST_RUN)
SOURCES = re.compile(r"\.(py|pyi|pyx|pxd|pxi|c|h|cc|cpp|cxx|hh|hpp|hxx|inc|s|f|f90|f95|rs|go|jl|in|tmpl)$")
"""File types an agent may add; others may only be changed, and only as text."""
HOW_TO_TEST = re.compile(
    r"(^|/)tests?/|^testing/|(^|/)(test_[^/]*|[^/]*_tests?|tests?|conftest|noxfile)\.py$|"
    r"(^|/)(pytest\.ini|tox\.ini)$|(^|/)asv[^/]*\.json$"
)
HOW_TO_BUILD = re.compile(
    r"(^|/)(setup\.(py|cfg)|pyproject\.toml|MANIFEST\.in|meson(\.build|_options\.txt|\.options)|CMakeLists\.txt|"
    r"[^/]*\.cmake|Makefile|build\.rs|Cargo\.(toml|lock)|sitecustomize\.py|usercustomize\.py|[^/]*\.pth)$|(^|/)testing/"
)
"""Files that may bring plug-ins of pytest, start with the interpreter, or be compared with by tests (`pkg/testing/`,
which may be timed too): an agent may change them only if the author did.
"""
FAILING = """

def {mark}(test):
    import functools

    @functools.wraps(test)
    def fails(*arguments, **keywords):
        test(*arguments, **keywords)
        raise AssertionError

    return fails
"""
FAILS = """
try:
    {test} = {mark}({test})
except Exception:
    pass
"""
"""Code at the end of a file of tests: once, and for each test that is to fail."""


def draw_first_user(mapped: str) -> int:
    """Draw the first of the users of this grading's arms, from those that the user namespace has, as *mapped* says.

    Random, since the kernel counts the processes of a user over all containers of the machine: two gradings at once
    with a user in common would find each other's processes. A rootless daemon has few users to draw from.

    https://man7.org/linux/man-pages/man7/user_namespaces.7.html
    """
    spans = ((int(first), int(count)) for first, _, count in map(str.split, mapped.splitlines()))
    end = max((min(first + count, USERS.stop) for first, count in spans if first + count > USERS.start), default=0)
    number = max(1, (end - USERS.start) // USERS_OF_A_GRADING)
    return USERS.start + USERS_OF_A_GRADING * random.SystemRandom().randrange(number)


with open("/proc/self/uid_map") as _mapped:
    FIRST_USER = draw_first_user(_mapped.read())
    """Arms build and run as separate users: none can reach the files of another, nor those of the agent."""


class ArmFailedError(Exception):
    """An arm could not be brought to its code."""


UNBUILT = (ArmFailedError, OSError, RecursionError)
"""Errors of an arm that is not built: names of files can be too long for a copy, and folders too deep."""


class Place:
    """One arm in its folder."""

    def __init__(self, arm: str) -> None:
        self.arm = arm
        # paths of one length: that of the arguments moves the stack
        self.folder = os.path.join(GRADED, str(ARMS.index(arm)))
        self.venv, self.repository = os.path.join(self.folder, "venv"), os.path.join(self.folder, "repo")
        self.python = os.path.join(self.venv, "bin", "python")
        self.user = FIRST_USER + 2 * ARMS.index(arm)
        self.builder = self.user + 1
        self.builder_home = os.path.join(f"{self.folder}-builder", "home")
        self._kept = f"{self.folder}-kept"
        self._laid: list[str] = []

    def run(
        self,
        argv: list[str],
        *,
        timeout: float,
        environment: dict[str, str],
        stdin: bytes = b"",
        build: bool = False,
        is_meeting: Callable[[bytes], bool] | None = None,
        watches_memory: bool = False,
    ) -> Done:
        """Run *argv* as the arm's user, in an empty home; or as the one that builds, whose home is kept."""
        user, home = (self.builder, self.builder_home) if build else (self.user, f"{self.folder}-user")
        if not build:
            remove_tree(home)
        if not os.path.isdir(home):
            os.makedirs(home)
            if build:
                with open(os.path.join(home, ".gitconfig"), "x") as file:
                    # builds read the history of the checkout, which is root's
                    file.write("[safe]\n\tdirectory = *\n")
            os.chmod(home, 0o700)
            os.chown(home, user, user)
        own = {"HOME": home, "TMPDIR": home} if build else {"HOME": home}
        environment = {**plain_environment(), **own, **environment}
        # what builds leave there is nothing that timed processes could write to
        locked = os.path.dirname(self.builder_home)
        if build:
            os.chmod(locked, 0o711)
        try:
            return run(
                argv,
                user=user,
                group=self.user,
                timeout=timeout,
                cwd=home,
                environment=environment,
                stdin=stdin,
                is_meeting=is_meeting,
                watches_memory=watches_memory,
            )
        finally:
            if build:
                os.chmod(locked, 0o700)

    def open_to(self, user: int) -> None:
        """Let *user* put files into the folders of the environment; the files there, and the checkout, stay root's."""
        # overlayfs may change a folder when it is read first, and tar would call that a fault of the checkout
        for folder, _, _ in os.walk(self.folder):
            if os.path.join(folder, "").startswith(os.path.join(self.venv, "")):
                os.chown(folder, user, user)

    def close(self) -> None:
        """Make all of the arm root's: its processes read it, and leave nothing in it."""
        for folder, folders, files in os.walk(self.folder):
            os.chown(folder, 0, 0)
            os.chmod(folder, 0o755)
            for path in (os.path.join(folder, name) for name in [*folders, *files]):
                os.chown(path, 0, 0, follow_symlinks=False)
                mode = os.lstat(path).st_mode
                if stat.S_ISREG(mode):
                    os.chmod(path, mode & ~(stat.S_IWGRP | stat.S_IWOTH))
                elif not (stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
                    os.unlink(path)
        # the author's code is nothing for the agent's
        os.chown(self.folder, 0, self.user)
        os.chmod(self.folder, 0o750)

    def lay(self, files: dict[str, bytes | None]) -> None:
        """Write *files* by path below the repository; None removes."""
        for path, content in files.items():
            target = self._own(path)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(target)
            if content is not None:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                # a new file: the old one is linked with those of the other arms
                with open(target, "xb") as file:
                    file.write(content)

    def read(self, path: str) -> bytes:
        """Return the content of the file at *path* below the repository; empty for a folder or nothing."""
        target = os.path.join(self.repository, path)
        if os.path.islink(target) or not os.path.isfile(target):
            return b""
        with open(target, "rb") as file:
            return file.read()

    def lay_suite(self, suite: dict[str, bytes], benchmark_dir: str) -> None:
        """Write the files of *suite* in place of the benchmark folder; the originals wait for `take_suite_out`."""
        os.mkdir(self._kept, 0o700)
        self._laid = [benchmark_dir, *(path for path in suite if not path.startswith(f"{benchmark_dir}/"))]
        for number, path in enumerate(self._laid):
            _move(self._own(path), os.path.join(self._kept, str(number)))
        self.lay({**suite})

    def take_suite_out(self) -> None:
        """Restore the checkout to its state before `lay_suite`."""
        for number, path in enumerate(self._laid):
            target = self._own(path)
            _remove(target)
            _move(os.path.join(self._kept, str(number)), target)
        self._laid = []
        _remove(self._kept)

    def _own(self, path: str) -> str:
        """Resolve *path* inside the checkout itself: a build may leave links in its way to another arm's."""
        target = self.repository
        *folders, name = path.split("/")
        for folder in folders:
            target = os.path.join(target, folder)
            if os.path.lexists(target) and (os.path.islink(target) or not os.path.isdir(target)):
                os.unlink(target)
        return os.path.join(target, name)


def make(arm: str, patch: bytes, changes: dict[str, bytes | None]) -> Place:
    """The *arm*, not built yet: the base with a *patch* or *changes*. `install` adds its suite.

    Raises ArmFailedError when the patch does not apply.
    """
    place = Place(arm)
    os.makedirs(place.folder)
    for name in ("venv", "repo"):
        _copy(os.path.join(SEALED, name), os.path.join(place.folder, name))
    place.lay(changes)
    if patch:
        command = ["git", "-c", "safe.directory=*", "apply", "--whitespace=nowarn", "-"]
        here = {**plain_environment(), "GIT_CEILING_DIRECTORIES": place.folder, "HOME": place.folder}
        _require(
            subprocess.run(command, input=patch, cwd=place.repository, env=here, stderr=subprocess.PIPE, check=False)
        )
    return place


def install(place: Place, task: dict[str, Any], environment: dict[str, str] | None = None) -> None:
    """Build and install the package from the arm's checkout, and lay the task's suite over that.

    Only the package's own files are taken from the agent. The suite is absent during the build, as in the original
    measurement: part of it may be the author's.

    Raises ArmFailedError with the build's message.
    """
    own = {
        "FC_VENV": place.venv,
        "FC_REPOSITORY": place.repository,
        "FC_SCRATCH": os.path.join(place.builder_home, "build"),
    }
    place.take_suite_out()
    place.open_to(place.builder)
    script = ["/opt/formulacode/bin/install-package"]
    own.update(environment or {})
    done = place.run(script, timeout=task["limits"]["build_seconds"], environment=own, build=True)
    if done.timed_out or done.rc:
        told = (done.stdout + b"\n" + done.stderr).decode(errors="replace")[-BUILD_FAILED_CHARACTERS:]
        raise ArmFailedError(f"the package {'takes too long to build' if done.timed_out else 'does not build'}\n{told}")
    if place.arm == AGENT:
        _keep_package_alone(place)
    if task["suite_files"] is not None:
        suite = {path: base64.b64decode(content) for path, content in task["suite_files"].items()}
        place.lay_suite(suite, task["benchmark_dir"].strip("/"))
    place.close()


def lay_build(place: Place, folder: str) -> None:
    """Copy the shared objects stored in *folder* to their places in the package, which only root may write.

    Raises ArmFailedError for any file that is not the arm's own.
    """
    with open(os.path.join(folder, "paths")) as file:
        paths = [path for path in file.read().split("\n") if path]
    for number, path in enumerate(paths):
        source = os.path.join(folder, str(number))
        if not os.path.realpath(path).startswith(f"{place.venv}/") or not stat.S_ISREG(os.lstat(source).st_mode):
            raise ArmFailedError(f"{path} is not a file of the package")
        shutil.copy2(source, f"{path}.fc")
        os.replace(f"{path}.fc", path)


def _keep_package_alone(place: Place) -> None:
    """Remove from the agent's build anything outside the places of the base's own build: hooks, other packages."""
    sealed, base = os.path.join(SEALED, "venv"), Place("base")
    libraries = [os.path.relpath(path, place.venv) for path in _libraries(place)]
    built = f"{place.venv}-built"
    os.rename(place.venv, built)
    _copy(sealed, place.venv)
    for library in libraries:
        for name in sorted(os.listdir(os.path.join(base.venv, library))):
            before, after = (os.path.join(venv, library, name) for venv in (sealed, base.venv))
            if name.endswith((".pth", "customize.py")) or _is_same(before, after):
                continue
            _remove(os.path.join(place.venv, library, name))
            # a version that is made from the state of the checkout differs, and with it the name of the metadata
            for theirs in os.listdir(os.path.join(built, library)):
                if _without_version(theirs) == _without_version(name):
                    os.rename(os.path.join(built, library, theirs), os.path.join(place.venv, library, theirs))
    shutil.rmtree(built)


def _without_version(name: str) -> str:
    """Return *name*, or that of the distribution if it is its metadata.

    https://packaging.python.org/en/latest/specifications/recording-installed-packages/#the-dist-info-directory
    """
    stem, extension = os.path.splitext(name)
    return stem.partition("-")[0] + extension if extension in {".dist-info", ".egg-info"} else name


def _is_same(before: str, after: str) -> bool:
    """Return True if both are links to the same files."""
    if not os.path.isdir(after):
        return os.path.exists(before) and os.path.samefile(before, after)
    return os.path.isdir(before) and all(
        _is_same(os.path.join(before, name), os.path.join(after, name)) for name in os.listdir(after)
    )


def lay_diff(path: str) -> None:
    """Apply the file *path* to the checkout, as the checkout's owner: git reads input of the agent's there.

    Raises ArmFailedError if there is none, or it does not apply.
    """
    if not os.path.isfile(path) or os.path.islink(path):
        raise ArmFailedError("the agent's container gave no changes")
    if os.path.getsize(path) > MOST_DIFF_BYTES:
        raise ArmFailedError(f"the changes take more than {MOST_DIFF_BYTES} bytes")
    with open(path, "rb") as file:
        diff = file.read()
    repository = os.environ["FC_REPOSITORY"]
    owner = os.lstat(repository)
    # without attributes and settings of the checkout, which the changes may change
    outside = {**plain_environment(), "GIT_CEILING_DIRECTORIES": os.path.dirname(repository), "GIT_DIR": os.devnull}
    if diff:
        done = run(
            ["git", "apply", "--whitespace=nowarn", "-"],
            user=owner.st_uid,
            group=owner.st_gid,
            timeout=DIFF_SECONDS,
            cwd=repository,
            environment={**outside, "HOME": repository},
            stdin=diff,
        )
        if done.rc:
            raise ArmFailedError(f"the changes do not apply\n{done.stderr.decode(errors='replace')}")


def seal() -> None:
    """Leave nothing that others own or may write to: what code under test keeps anywhere is not there for the next.

    Before an agent came, all of its image but its checkout, its environment and its home was root's. Files in public
    places go with each process. What the harness has mounted stays, behind a folder that only root enters.
    """
    own = os.lstat("/").st_dev
    agents = {os.environ["FC_REPOSITORY"], os.environ["FC_VENV"], "/home/formulacode"}
    passed = {"/proc", "/sys", "/dev", *PUBLIC, *agents}
    for folder, folders, files in os.walk("/"):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in passed]
        mounted = [name for name in folders if os.lstat(os.path.join(folder, name)).st_dev != own]
        if mounted and folder != "/":
            os.chmod(folder, 0o700)
        folders[:] = [name for name in folders if name not in mounted]
        for path in [folder, *(os.path.join(folder, name) for name in files)]:
            with contextlib.suppress(OSError):
                told = os.lstat(path)
                if told.st_dev != own:
                    continue
                if told.st_uid and not stat.S_ISDIR(told.st_mode):
                    os.unlink(path)
                    continue
                if told.st_uid:
                    os.chown(path, 0, 0)
                if told.st_mode & stat.S_IWOTH and not stat.S_ISLNK(told.st_mode):
                    os.chmod(path, stat.S_IMODE(told.st_mode) & ~(stat.S_IWOTH | stat.S_IWGRP))
    for folder in agents:
        os.chmod(folder, 0o700)
        os.chown(folder, 0, 0)


def _move(source: str, target: str) -> None:
    if os.path.lexists(source):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.rename(source, target)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _libraries(place: Place) -> list[str]:
    paths = sysconfig.get_paths("posix_prefix", {"base": place.venv, "platbase": place.venv})
    return sorted({paths["purelib"], paths["platlib"]})


def changes_of(task: dict[str, Any]) -> tuple[dict[str, bytes | None], list[str]]:
    """Return the agent's changes to the checkout that count, and the paths of those that do not.

    Sources count. Instructions for measuring or testing never do, nor do files of the tests that are run, nor binary
    files, links, tables and large files: they may hold results.
    """
    before, after = (_files(folder) for folder in (os.path.join(SEALED, "repo"), os.environ["FC_REPOSITORY"]))
    authors = frozenset(task["patched_paths"])
    root = task["package_root"]
    tests = {os.path.normpath(os.path.join(root, name.partition("::")[0])) for name in task["pass_to_pass"]}
    changes: dict[str, bytes | None] = {}
    left_out = []
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old and new and _content(old) == _content(new):
            continue
        content = _content(new) if new else None
        is_other = path in tests or not _counts(path, task["benchmark_dir"], authors)
        if is_other or (new and not _is_source(path, content, _content(old) if old else None)):
            left_out.append(path)
        else:
            changes[path] = content
    return changes, left_out


def _counts(path: str, benchmark_dir: str, authors: frozenset[str]) -> bool:
    if path.startswith(f"{benchmark_dir.rstrip('/')}/") or HOW_TO_TEST.search(path):
        return False
    return path in authors or not HOW_TO_BUILD.search(path)


def _is_source(path: str, content: bytes | None, before: bytes | None) -> bool:
    if content is None or len(content) > MOST_BYTES or b"\0" in content or _is_table(content, before or b""):
        return False
    return before is not None or SOURCES.search(path) is not None


def _is_table(content: bytes, before: bytes) -> bool:
    """Return True if *content* has more numbers than *before*, or longer runs of characters, than code needs."""
    added = len(NUMBER.findall(content)) - len(NUMBER.findall(before))
    return added > MOST_NUMBERS or not set(RUN.findall(content)) <= set(RUN.findall(before))


def _files(root: str) -> dict[str, str]:
    """Files below *root* by their paths there, without git's own."""
    found = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in {".git", "__pycache__"}]
        linked = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in [*files, *linked]:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, root)] = path
    return found


def _content(path: str) -> bytes | None:
    """Content of a plain file, or None: links lead elsewhere, and pipes never end."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return None if not os.path.islink(path) else b"\0" + os.fsencode(os.readlink(path))
    with open(path, "rb") as file:
        return file.read()


def _copy(source: str, target: str) -> None:
    """Copy folders and link their files, read-only for everybody but root."""
    subprocess.run(["cp", "-al", source, target], check=True)


def _require(done: subprocess.CompletedProcess[bytes]) -> None:
    if done.returncode:
        raise ArmFailedError(f"the patch does not apply\n{done.stderr.decode(errors='replace')}")


def for_tests(place: Place, sabotaged: Iterable[str] = ()) -> str:
    """Return a fresh copy of the arm's checkout in which its tests may write, and those *sabotaged* fail."""
    folder = f"{place.folder}-tests"
    remove_tree(folder)
    _copy(place.repository, folder)
    _sabotage(folder, sabotaged)
    for within, _, _ in os.walk(folder):
        os.chown(within, place.user, place.user)
    os.chmod(folder, 0o700)
    return folder


def _sabotage(folder: str, names: Iterable[str]) -> None:
    """Append code to the files of the tests *names* that makes each fail at its end: no request says which they are.

    All parameters of a test fail, and whatever inherits or imports it from there.
    """
    root = os.path.realpath(folder)
    by_file: dict[str, set[str]] = {}
    for name in names:
        path, *parts = (part for part in name.partition("[")[0].split("::") if part != "()")
        if parts and all(part.isidentifier() for part in parts):
            by_file.setdefault(os.path.normpath(os.path.join(root, path)), set()).add(".".join(parts))
    for path, tests in by_file.items():
        # a build may have left links to another arm's
        if os.path.realpath(path) != path or not path.startswith(f"{root}/") or not os.path.isfile(path):
            continue
        with open(path, "rb") as file:
            content = file.read()
        mark = f"_{secrets.token_hex(8)}"
        os.unlink(path)
        with open(path, "xb") as file:
            file.write(content + FAILING.format(mark=mark).encode())
            file.writelines(FAILS.format(mark=mark, test=test).encode() for test in sorted(tests))
