"""Reasons to reject an agent's edit from its text, before anything is built from it.

An accepted edit is still only a spec: the code that builds and verifies every image builds and verifies this one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from packaging.utils import canonicalize_name
from pydantic import ValidationError

from formulacode_dagster.building.declarations.declared_requirement import (
    DeclaredRequirement,
    requirement_name,
    validate,
)
from formulacode_dagster.models.base import first_fault
from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.image import BuildSpec

from .edit import PreBuildCommand, SpecEdit
from .protocol import EditGate

LONGEST_FILE = 64 * 1024
"""Bytes of `edit.toml`."""

_DEBIAN = re.compile(r"[a-z0-9][a-z0-9+.-]*[a-z0-9+]")
_MEASURES = re.compile(r"asv([-_.].*)?|pytest-.*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNASKED = re.compile(
    r"(LD|DYLD|PIP|UV|GIT|FC|BASH|CCACHE|SSL|REQUESTS|CURL|DOCKER|ASV|PYTEST|NODE|NPM|CARGO|RUSTC|RUSTUP|CONDA|COVERAGE"
    r"|XDG)_.*|PYTHON.*|PATH|HOME|ENV|IFS|SHELL|MAKEFLAGS|MAKEFILES|TMPDIR|PROMPT_COMMAND|VIRTUAL_ENV"
    r"|SOURCE_DATE_EPOCH|DIST_EXTRA_CONFIG|.*_PROXY|.*(TOKEN|SECRET|PASSWORD|API_?KEY).*",
    re.IGNORECASE,
)
_COMPILERS = frozenset({"CC", "CXX", "CPP", "FC", "F77", "F90", "AR", "LD", "RANLIB"})
_COMPILER = re.compile(r"(gcc|g\+\+|cc|c\+\+|cpp|clang|clang\+\+|gfortran|ar|gcc-ar|ld|ld\.gold|ranlib)(-\d+)?")
_CODE_OF_FLAGS = re.compile(r"-(fplugin|wrapper|specs|include|imacros|B|Wp,|Wa,@|Xclang|load)|(^|\s)@")
_PROGRAMS = frozenset(
    {"aclocal", "autoconf", "autoreconf", "automake", "cmake", "cp", "cython", "libtoolize", "make", "meson", "mkdir"}
    | {"ninja", "python", "python3", "swig", "touch"}
)
_MODULES = frozenset({"Cython", "cython", "numpy.f2py", "setuptools_scm"})
_ARGUMENT = re.compile(r"[A-Za-z0-9_.,:=+@%/-]+")
_SETTING = re.compile(r"[A-Za-z0-9_.-]+=[A-Za-z0-9_.,:=+@%/ -]*")
_ABSOLUTE = re.compile(r"(^|[=:,]|^-[A-Za-z])/")
_PLANTED = re.compile(
    r"(sitecustomize|usercustomize|conftest|asv[^/]*)(\.[^/]*)?|.*\.(pth|whl|egg)|verification_success\.json|\.git.*",
    re.IGNORECASE,
)


class EditRefused(FormulaCodeError):
    """An edit that *gate* does not let pass."""

    def __init__(self, gate: EditGate, what: str, *, edit: SpecEdit | None = None) -> None:
        self.gate = gate
        self.edit = edit
        super().__init__(what)


def read_edit(text: bytes) -> SpecEdit:
    """The edit that the *text* of an `edit.toml` asks for; raises EditRefused (`format`) for anything else."""
    if len(text) > LONGEST_FILE:
        raise EditRefused(EditGate.FORMAT, f"edit.toml has {len(text)} bytes, more than {LONGEST_FILE}")
    try:
        return SpecEdit.model_validate(tomllib.loads(text.decode()))
    except UnicodeDecodeError as error:
        raise EditRefused(EditGate.FORMAT, f"edit.toml is no UTF-8: {error}") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise EditRefused(EditGate.FORMAT, f"edit.toml is not valid TOML: {error}") from error
    except ValidationError as error:
        raise EditRefused(EditGate.FORMAT, f"edit.toml: {first_fault(error)}") from error


def require_honest(edit: SpecEdit, spec: BuildSpec, own_names: Iterable[str] = (), *, key: str = "") -> SpecEdit:
    """*edit*, when every gate lets it pass; raises EditRefused with the first that does not.

    *spec* is the spec to change, *own_names* are the package's names on the index, *key* is the key in the agent's
    environment.
    """
    if key and key in edit.model_dump_json():
        raise EditRefused(EditGate.CREDENTIAL, "the edit holds the key of the agent's environment", edit=edit)
    own = (*own_names, spec.package_name, spec.repository.rpartition("/")[2])
    names: set[str] = {canonicalize_name(name) for name in own}
    for gate, fault in (
        *((EditGate.SYSTEM_PACKAGE, fault) for fault in _of_packages(edit)),
        *_of_requirements(edit, names),
        *((EditGate.ENVIRONMENT, fault) for fault in _of_environment(edit.environment)),
        *((EditGate.BUILD_ARGUMENT, fault) for fault in _of_arguments(edit.build_arguments)),
        *((EditGate.PRE_BUILD, fault) for command in edit.pre_build for fault in _of_command(command)),
    ):
        raise EditRefused(gate, fault, edit=edit)
    return edit


def _of_packages(edit: SpecEdit) -> Iterator[str]:
    for name in (*edit.system_packages, *edit.without_system_packages):
        if not _DEBIAN.fullmatch(name):
            yield f"{name!r} is no plain name of a Debian package"


def _of_requirements(edit: SpecEdit, own: set[str]) -> Iterator[tuple[EditGate, str]]:
    judged = validate(
        DeclaredRequirement(text=text, source="edit.toml") for text in (*edit.requirements, *edit.constraints)
    )
    for dropped in judged.dropped:
        yield EditGate.REQUIREMENT, f"{dropped.requirement!r} {dropped.reason}"
    for accepted in judged.accepted:
        name = requirement_name(accepted.text)
        if name in own:
            yield EditGate.OWN_PACKAGE, f"{accepted.text!r} is the package itself, which is built from the checkout"
        elif _MEASURES.fullmatch(name):
            yield EditGate.MEASURING_TOOL, f"{accepted.text!r} takes part in measuring or verifying"


def _of_environment(variables: Mapping[str, str]) -> Iterator[str]:
    for name, value in variables.items():
        if not _VARIABLE.fullmatch(name):
            yield f"{name!r} cannot be the name of a variable"
        elif _UNASKED.fullmatch(name):
            yield f"{name} changes the behaviour of every program, or the origin of packages"
        elif name in _COMPILERS and not _COMPILER.fullmatch(value):
            yield f"{name}={value} is no compiler of the image"
        elif _CODE_OF_FLAGS.search(value):
            yield f"{name}={value} adds code to the compilation"


def _of_arguments(arguments: Iterable[str]) -> Iterator[str]:
    for argument in arguments:
        if not _SETTING.fullmatch(argument):
            yield f"{argument!r} is not `key=value` of plain characters"
        elif _leads_out(argument) or _CODE_OF_FLAGS.search(argument.replace("=", " ")):
            yield f"{argument!r} brings code in, or leads out of the repository"


def _leads_out(word: str) -> bool:
    return _ABSOLUTE.search(word) is not None or ".." in re.split(r"[=:,/ ]", word)


def _of_command(command: PreBuildCommand) -> Iterator[str]:
    program, *arguments = command.argv
    line = " ".join(command.argv)
    for word in (*command.argv, command.folder):
        parts = PurePosixPath(word).parts
        if not _ARGUMENT.fullmatch(word):
            yield f"`{line}`: {word!r} is more than a plain argument"
        elif _leads_out(word):
            yield f"`{line}`: {word!r} leads out of the repository"
        elif any(_PLANTED.fullmatch(piece) for part in parts for piece in re.split(r"[=:,]", part)):
            yield f"`{line}`: {word!r} is not made by a build"
    is_of_repository = "/" in program
    if not is_of_repository and program not in _PROGRAMS:
        yield f"`{line}`: {program} is none of {', '.join(sorted(_PROGRAMS))}, nor a file of the repository"
    if program.startswith("python"):
        yield from _of_python(line, arguments)


def _of_python(line: str, arguments: list[str]) -> Iterator[str]:
    first, second = [*arguments, "", ""][:2]
    if first == "-m" and second not in _MODULES:
        yield f"`{line}`: {second} is none of the modules {', '.join(sorted(_MODULES))}"
    elif first != "-m" and (first.startswith("-") or not first.endswith(".py")):
        yield f"`{line}`: Python is given a file of the repository, or -m and a module"
