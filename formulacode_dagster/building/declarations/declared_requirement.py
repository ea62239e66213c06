"""A declared requirement, and the only validation of such text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.environment import DroppedRequirement

from .python_source import parse_requirement
from .tree import Tree, join

_OPTION_TAIL = re.compile(r"(?<!\s)\s+--?[A-Za-z][\w-]*([= ].*)?$")
_COMMENT = re.compile(r"(^|\s)#.*$")
_MOST_FILES = 100
"""Requirements files that include each other."""


class DeclaredRequirement(Frozen):
    """One requirement, verbatim, and its place."""

    text: str
    source: str

    def dropped(self, reason: str) -> DroppedRequirement:
        """The record of leaving it out."""
        return DroppedRequirement(requirement=self.text, source=self.source, reason=reason)


class Validated(Frozen):
    """Requirements sorted into those the resolver accepts and those it does not."""

    accepted: tuple[DeclaredRequirement, ...] = ()
    dropped: tuple[DroppedRequirement, ...] = ()


def requirement_name(text: str) -> str:
    """The normalised project name of a requirement that parses."""
    return canonicalize_name(parse_requirement(text).name)


def validate(requirements: Iterable[DeclaredRequirement], *, own_name: str = "") -> Validated:
    """Parse each requirement with `packaging`; invalid ones are dropped with a reason, never rewritten.

    References to the project itself (*own_name*) are left out without a record: it is built from the checkout.
    """
    accepted: dict[str, DeclaredRequirement] = {}
    dropped: dict[tuple[str, str], DroppedRequirement] = {}
    for declared in requirements:
        reason = ""
        try:
            requirement = parse_requirement(declared.text)
        except InvalidRequirement as error:
            reason = f"does not parse: {str(error).splitlines()[0]}"
        else:
            if own_name and canonicalize_name(requirement.name) == canonicalize_name(own_name):
                continue
            if requirement.url is not None:
                reason = "points to a URL: nothing outside the index can be pinned by date and hash"
        if reason:
            dropped.setdefault((declared.text, declared.source), declared.dropped(reason))
        else:
            accepted.setdefault(declared.text, declared)
    return Validated(accepted=tuple(accepted.values()), dropped=tuple(dropped.values()))


def with_included(
    names: Iterable[str],
    own: Mapping[str, Iterable[DeclaredRequirement]],
    included: Mapping[str, Iterable[str]],
) -> tuple[DeclaredRequirement, ...]:
    """Return the *own* requirements of *names* and of all that these have *included*, each name once."""
    pending, seen = list(names)[::-1], dict[str, None]()
    while pending:
        name = pending.pop()
        if name not in seen:
            seen[name] = None
            pending.extend(reversed([*included.get(name, ())]))
    return tuple(item for name in seen for item in own.get(name, ()))


def read_requirements_file(tree: Tree, path: str, *, seen: set[str] | None = None) -> tuple[DeclaredRequirement, ...]:
    """Return the requirements of a pip requirements file, `-r` includes followed; empty if there is no such file.

    Each file is read once; *seen* are those read before, and then these, too.
    """
    seen = set() if seen is None else seen
    text = tree.text(path)
    if text is None or path in seen or len(seen) >= _MOST_FILES:
        return ()
    seen.add(path)
    folder = path.rpartition("/")[0] or "."

    def include(relative: str) -> tuple[DeclaredRequirement, ...]:
        target = join(folder, relative)
        return () if target is None else read_requirements_file(tree, target, seen=seen)

    return parse_requirement_lines(text, source=path, include=include)


def read_requirements_files(
    tree: Tree, folder: str, names: Iterable[str], *, seen: set[str] | None = None
) -> tuple[DeclaredRequirement, ...]:
    """Return the requirements in the files *names*, relative to *folder*; files outside the repository have none.

    *seen* is as in `read_requirements_file`.
    """
    seen = set() if seen is None else seen
    paths = (join(folder, name.strip()) for name in names)
    return tuple(item for path in paths if path is not None for item in read_requirements_file(tree, path, seen=seen))


def parse_requirement_lines(
    text: str, *, source: str, include: Callable[[str], tuple[DeclaredRequirement, ...]] | None = None
) -> tuple[DeclaredRequirement, ...]:
    """Return the requirements in the lines of a requirements file; options are left out, `-e` lines are kept to be
    dropped.
    """
    requirements: list[DeclaredRequirement] = []
    for raw in text.replace("\\\n", " ").splitlines():
        line = _COMMENT.sub("", raw).strip()
        if not line:
            continue
        option = re.match(r"(?:-r|--requirement)[\s=]*(\S+)$", line)
        if option is not None:
            requirements.extend(include(option[1]) if include is not None else ())
        elif line.startswith(("-e", "--editable")):
            requirements.append(DeclaredRequirement(text=line, source=source))
        elif not line.startswith("-"):
            requirements.append(DeclaredRequirement(text=_OPTION_TAIL.sub("", line).strip(), source=source))
    return tuple(requirements)
