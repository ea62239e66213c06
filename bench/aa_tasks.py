"""The repositories and patches of `bench/aa.py`: edits that change nothing, and effects of a known size."""

from __future__ import annotations

import hashlib
import itertools
import random
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import uv
from aa_sources import LAID, tests_of

from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.building.specs.spec import INSTRUMENT
from formulacode_dagster.models.image import BuildSpec, BuiltImage, EngineName

PROJECT = """[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "tiny"
version = "1.0"
"""
SETUP = """from setuptools import Extension, setup

setup(packages=["tiny"], ext_modules=[Extension("tiny._core", ["tiny/core.c"])])
"""
PURE_SETUP = 'from setuptools import setup\n\nsetup(packages=["tiny"])\n'
PURE = """def polynomial(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total


def letters(n):
    return "".join(chr(97 + i % 26) for i in range(n))


def counts(n):
    seen = {}
    for i in range(n):
        seen[i % 97] = seen.get(i % 97, 0) + 1
    return seen
"""
PURE_FUNCTIONS = ("polynomial", "letters", "counts")
C_FUNCTIONS = {
    "polynomial": "long total = 0; for (long i = 0; i < n; i++) total += i * i % 7; return total;",
    "steps": "long x = n | 1; for (long i = 0; i < n; i++) x = x & 1 ? (3 * x + 1) % 1000003 : x >> 1; return x;",
    "table": "long seen[97] = {0}; for (long i = 0; i < n; i++) seen[(i * 31) % 97] += i; return seen[5];",
}
SPARE = "static long spare{n}(long n) {{ long x = n; for (long i = 0; i < n; i++) x ^= x << {s}; return x; }}"


@dataclass(frozen=True)
class AaTask:
    """One patch: the kind of edit, its repository, and its true effect."""

    number: int
    kind: str
    effect: float
    repository: str = ""
    """A mirror's `owner/name`, or a pull request of it whose workloads were found; `` for one of our own two."""
    source: str = ""
    """For our own two: the source whose timing its functions follow; `` for their suite."""

    @property
    def is_compiled(self) -> bool:
        """True for the repository with compiled code."""
        return self.kind.startswith("c ")

    @property
    def builds_a_mirror(self) -> bool:
        """True if compiled code of a real repository is rebuilt for it repeatedly."""
        return self.is_compiled and self.repository != ""


NO_EFFECT = ("py comments", "py helper", "c unrelated function", "c reordered functions", "c rebuild")
EFFECTS = (1.05, 1.1, 1.2, 2.0)


def tasks(
    count: int, per_effect: int, mirrors: Mapping[str, Sequence[str]] | None = None, per_source: int = 0
) -> list[AaTask]:
    """*count* tasks without effect, *per_source* of each way to lay workloads, and *per_effect* of each effect.

    Of the last, half are compiled.

    Those without effect rotate through all kinds of our own repositories, and of those that *mirrors* have, by name;
    each place has its own counter, so that adding one leaves the others unchanged. Effects of a known size use only our
    own.
    """
    places = [("", kind) for kind in NO_EFFECT]
    places += [(name, kind) for name, kinds in sorted((mirrors or {}).items()) for kind in kinds]
    asked = [
        AaTask(number // len(places), kind, 1.0, name)
        for number, (name, kind) in zip(range(count), itertools.cycle(places), strict=False)
    ]
    asked += [
        AaTask(number // len(NO_EFFECT), NO_EFFECT[number % len(NO_EFFECT)], 1.0, source=source)
        for number in range(per_source)
        for source in LAID
    ]
    for effect in EFFECTS:
        asked += [AaTask(n, "c effect" if n % 2 else "py effect", effect) for n in range(per_effect)]
    return asked


def files(*, compiled: bool) -> dict[str, str]:
    """The repository at its base."""
    if compiled:
        names = list(C_FUNCTIONS)
        own = {
            "tiny/core.c": c_source(1.0, names, ()),
            "tiny/__init__.py": f"from tiny._core import {', '.join(names)}\n",
        }
        own |= {"setup.py": SETUP, "pyproject.toml": PROJECT} | suite(names, 60_000)
    else:
        own = {"tiny/__init__.py": py_source(1.0), "setup.py": PURE_SETUP, "pyproject.toml": PROJECT}
        own |= suite(PURE_FUNCTIONS, 4000)
    own.update(tests_of(*timed(compiled=compiled)))
    return own


def timed(*, compiled: bool) -> tuple[Sequence[str], int]:
    """Timed code of sources other than the suite: functions, and a size with which a call takes some milliseconds."""
    return (tuple(C_FUNCTIONS), 2_000_000) if compiled else (PURE_FUNCTIONS, 40_000)


def suite(names: Sequence[str], size: int) -> dict[str, str]:
    """One benchmark a function."""
    text = "import tiny\n" + "".join(f"\n\ndef time_{name}():\n    tiny.{name}({size})\n" for name in names)
    return {"benchmarks/__init__.py": "", "benchmarks/bench.py": text}


def changed(task: AaTask, generator: random.Random) -> dict[str, str]:
    """The files that the patch of *task* changes, as they are afterwards."""
    if task.kind == "py comments":
        lines = PURE.split("\n")
        for _ in range(generator.randrange(1, 9)):
            lines.insert(generator.choice([0, len(lines)]), f"# {generator.random()}")
        return {"tiny/__init__.py": "\n".join(lines) + "\n"}
    if task.kind == "py helper":
        helper = f"\n\ndef unused_{generator.randrange(999)}(n):\n    return [i for i in range(n)]\n"
        return {"tiny/__init__.py": PURE + helper}
    if task.kind == "py effect":
        return {"tiny/__init__.py": py_source(task.effect)}
    names = list(C_FUNCTIONS)
    while task.kind == "c reordered functions" and names == [*C_FUNCTIONS]:
        generator.shuffle(names)
    spare: tuple[str, ...] = ()
    if task.kind == "c unrelated function":
        spare = tuple(SPARE.format(n=n, s=generator.randrange(1, 30)) for n in range(generator.randrange(1, 4)))
    source = c_source(task.effect, names, spare)
    if task.kind == "c rebuild":
        # only a marker that distinguishes builds: it is compiled and linked from scratch
        source += f'const char tiny_built[] = "{generator.random()}";\n'
    return {"tiny/core.c": source}


def py_source(effect: float) -> str:
    """The module, as much faster as *effect* says: it does as much less."""
    return PURE.replace("range(n)", f"range(round(n / {effect}))") if effect != 1.0 else PURE


def c_source(effect: float, names: list[str], spare: tuple[str, ...]) -> str:
    """Return the extension with its functions in the order of *names*, and *spare* uncalled ones."""
    functions = []
    for name in names:
        body = C_FUNCTIONS[name] if effect == 1.0 else f"n = (long)(n / {effect}); {C_FUNCTIONS[name]}"
        functions.append(f"static long do_{name}(long n) {{ {body} }}")
        functions.append(
            f"static PyObject *{name}(PyObject *self, PyObject *arg) "
            f"{{ return PyLong_FromLong(do_{name}(PyLong_AsLong(arg))); }}"
        )
    # referred to by a table, or the compiler would leave them out
    kept = [f"void *tiny_spare{n} = (void *)spare{n};" for n in range(len(spare))]
    entries = ", ".join(f'{{"{name}", {name}, METH_O, ""}}' for name in sorted(names))
    return "\n".join(
        [
            "#include <Python.h>",
            *spare,
            *kept,
            *functions,
            f"static PyMethodDef methods[] = {{{entries}, {{NULL, NULL, 0, NULL}}}};",
            'static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_core", NULL, -1, methods};',
            "PyMODINIT_FUNC PyInit__core(void) { return PyModule_Create(&module); }",
            "",
        ]
    )


def git(repository: Path, *arguments: str) -> bytes:
    """Return git's output."""
    command = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True).stdout


def commit(repository: Path, content: dict[str, str]) -> str:
    """Make the repository; returns its only commit."""
    lay(repository, content)
    git(repository, "init", "-q", "-b", "main")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "base")
    return git(repository, "rev-parse", "HEAD").decode().strip()


def lay(repository: Path, content: dict[str, str]) -> None:
    """Write files."""
    for path, text in content.items():
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text(text, "utf-8", "surrogateescape", newline="")


def diff(repository: Path, after: dict[str, str]) -> bytes:
    """The patch that gives files the text they have *after*."""
    lay(repository, after)
    patch = git(repository, "diff")
    git(repository, "checkout", "-q", ".")
    return patch


def build(engine: ProcessEngine, repository: Path, base: str) -> BuiltImage:
    """The image of the repository at *base*."""
    command = [uv.find_uv_bin(), "--no-config", "pip", "compile", "--quiet", "--generate-hashes", "-"]
    lock = subprocess.run(
        command, input=b"setuptools==75.3.0\npytest==8.4.2\n", capture_output=True, check=True
    ).stdout.decode()
    spec = BuildSpec(
        task_id="acme__tiny-1", repository="acme/tiny", repository_id=1, base_sha=base, anchor_sha=base, python="3.11",
        os_image="unused:{python}", instrument=INSTRUMENT, lock=lock,
        lock_sha256=hashlib.sha256(lock.encode()).hexdigest(), package_name="tiny", benchmark_dir="benchmarks",
    )  # fmt: skip
    outcome = engine.build(spec, Origins(repository / ".git"))
    return BuiltImage(
        month="2026-02", repository_id=1, number=1, engine=EngineName.PROCESS, spec=spec, tag=outcome.tag,
        digest=outcome.digest, location=outcome.location, size_bytes=outcome.size_bytes,
        build_seconds=outcome.seconds, tiers=outcome.tiers, benchmarks=(), verifications=(),
    )  # fmt: skip
