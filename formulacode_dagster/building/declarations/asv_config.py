"""The asv configuration of a suite: its path and its content, read as asv reads it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any

import regex
from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.git.asv_files import nearest_config

from .tree import Tree, join

MATCH_SECONDS = 2.0
"""Time limit for all patterns of a configuration in one search: the file is untrusted."""

_KINDS = frozenset({"req", "env", "env_nobuild"})


def _scalar(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"holds {type(value).__name__} where a string belongs")
    return value


def _sequence(value: object) -> object:
    """Return *value* as asv reads a list: a single value stands for a list of one."""
    return value if isinstance(value, list | tuple) else [value]


Scalar = Annotated[str | None, BeforeValidator(_scalar)]
Text = Annotated[str, BeforeValidator(lambda value: _scalar(value) or "")]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_sequence)]
Entries = Mapping[tuple[str, str], str | None]
"""Values or patterns by (kind, key); the key is empty for the interpreter and the platform."""
Values = Annotated[tuple[Scalar, ...], BeforeValidator(lambda value: _sequence(value) or [""])]
"""Values of one matrix key: `` means any version, None means that the key is absent."""


class _ByKind(Frozen):
    """Entries by their kind. The old form, nothing but packages, is read as `req`."""

    @model_validator(mode="before")
    @classmethod
    def _new_form(cls, data: Any) -> Any:
        if isinstance(data, cls):
            return data
        if not isinstance(data, dict):
            raise ValueError(f"holds {type(data).__name__} where an object belongs")
        bare = {name: data[name] for name in data.keys() & cls.model_fields.keys() - _KINDS}
        parts = {name: value for name, value in data.items() if name not in bare}
        if not parts.keys() & _KINDS:
            return {**bare, "req": parts}
        if strange := sorted(parts.keys() - _KINDS):
            raise ValueError(f"mixes {', '.join(strange)} with req, env and env_nobuild")
        return {**bare, **{kind: part or {} for kind, part in parts.items()}}

    def entries(self) -> dict[tuple[str, str], Any]:
        """Values for each (kind, key)."""
        return {(kind, key): value for kind, part in self if kind in _KINDS for key, value in part.items()}


class Matrix(_ByKind):
    """asv's `matrix`."""

    req: dict[str, Values] = Field(default_factory=dict, description="package → versions")
    env: dict[str, Values] = Field(default_factory=dict, description="variables of build and benchmark runs")
    env_nobuild: dict[str, Values] = Field(default_factory=dict, description="variables of benchmark runs only")


class MatrixRule(_ByKind):
    """One entry of `include` or `exclude`. Values are regular expressions in `exclude`, plain in `include`."""

    python: Scalar = None
    environment_type: Scalar = None
    sys_platform: Scalar = None
    req: dict[str, Scalar] = Field(default_factory=dict)
    env: dict[str, Scalar] = Field(default_factory=dict)
    env_nobuild: dict[str, Scalar] = Field(default_factory=dict)


class AsvConfig(Frozen):
    """The part of an asv.conf.json that an environment depends on."""

    path: str = Field(description="path of the file below the repository")
    project: Text = ""
    repo: Text = Field(default="", description="as written: address or path of what is benchmarked")
    repo_subdir: Text = ""
    pythons: Texts = Field(default=(), description="as written; empty when asv would take its own")
    matrix: Matrix = Matrix()
    include: Annotated[tuple[MatrixRule, ...], BeforeValidator(_sequence)] = ()
    exclude: Annotated[tuple[MatrixRule, ...], BeforeValidator(_sequence)] = ()
    build_command: Texts | None = None
    install_command: Texts | None = None
    benchmark_dir: Text = Field(default="", description="folder of the benchmarks below the repository")
    environment_type: Text = ""
    conda_environment_file: Text = Field(
        default="", description="as written; `IGNORE` for none, not even the usual one"
    )

    @field_validator("exclude")
    @classmethod
    def _patterns(cls, rules: tuple[MatrixRule, ...]) -> tuple[MatrixRule, ...]:
        for pattern in (pattern for rule in rules for pattern in _wanted(rule).values()):
            try:
                regex.compile(pattern or "")
            except regex.error as error:
                raise ValueError(f"holds {pattern!r}, which is not a regular expression: {error}") from error
        return rules

    @property
    def folder(self) -> str:
        """Folder of the configuration file, `.` for the top."""
        return self.path.rpartition("/")[0] or "."


def find_config(tree: Tree) -> str | None:
    """Path of the asv configuration: at the top first, else the shallowest, else the first by name. None: no suite."""
    return nearest_config(tree.files)


def read_config(tree: Tree, path: str) -> AsvConfig:
    """Read the configuration at *path*; comments and trailing commas are allowed, unknown keys ignored.

    Raises ItemFailure (`asv_config`) when it is not an object of the form asv accepts.
    """
    import json5

    text = tree.text(path)
    if text is None:
        raise _malformed(path, "there is no such file")
    try:
        data = json5.loads(text)
    except (ValueError, RecursionError) as error:
        raise _malformed(path, str(error).splitlines()[0]) from error
    if not isinstance(data, dict):
        raise _malformed(path, "it is not an object")
    given = {name: data[name] for name in AsvConfig.model_fields.keys() & data.keys() if data[name] is not None}
    try:
        config = AsvConfig.model_validate({**given, "matrix": data.get("matrix") or {}, "path": path})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place, what = ".".join(map(str, first["loc"])), first.get("ctx", {}).get("error", first["msg"])
        raise _malformed(path, f"{place} {what}") from error
    benchmark_dir = join(config.folder, config.benchmark_dir or "benchmarks")
    if benchmark_dir is None:
        raise _malformed(path, "benchmark_dir is outside the repository")
    return config.model_copy(update={"benchmark_dir": benchmark_dir})


class MatrixRules:
    """`exclude` and `include` of a configuration, for one search: all their patterns together have one limit of time.

    Both methods raise ItemFailure (`asv_config`) when it is used up.
    """

    def __init__(self, config: AsvConfig) -> None:
        self._platform: Entries = {
            ("environment_type", ""): config.environment_type or "virtualenv",
            ("sys_platform", ""): "linux",
        }
        self._exclude = [_wanted(rule) for rule in config.exclude]
        self._until = time.thread_time() + MATCH_SECONDS

    def exclude(self, python: str, chosen: Entries) -> bool:
        """Return True if an `exclude` rule matches the combination *chosen* of (kind, key) → value on *python*."""
        target = {**chosen, ("python", ""): python, **self._platform}
        return any(self._matches(target, wanted) for wanted in self._exclude)

    def apply(self, rule: MatrixRule) -> bool:
        """Return True if an `include` entry is for this platform and kind of environment."""
        wanted = {place: pattern for place, pattern in _wanted(rule).items() if place in self._platform}
        return self._matches(self._platform, wanted)

    def _matches(self, target: Entries, wanted: Entries) -> bool:
        """Match as asv matches rules; null stands for an absent value."""
        return all(self._matches_value(pattern, target.get(place)) for place, pattern in wanted.items())

    def _matches_value(self, pattern: str | None, actual: str | None) -> bool:
        """Match the first match of *pattern* with all of *actual*."""
        left = self._until - time.thread_time()
        try:
            if left <= 0:
                raise TimeoutError
            if pattern is None or actual is None:
                return pattern is actual
            match = regex.match(pattern, actual, timeout=left)
        except TimeoutError as error:
            raise ItemFailure(
                FailureKind.ASV_CONFIG,
                f"the pattern {str(pattern)[:60]!r} of an `exclude` or `include` cannot be matched",
                why=f"all of them together take more than {MATCH_SECONDS:g} s, this one on {str(actual)[:60]!r}",
                remedy="One repeats a repetition: such a file is as good as unreadable",
            ) from error
        return match is not None and match.end() == len(actual)


def _wanted(rule: MatrixRule) -> Entries:
    return {(name, ""): value for name, value in rule if isinstance(value, str)} | rule.entries()


def _malformed(path: str, why: str) -> ItemFailure:
    return ItemFailure(
        FailureKind.ASV_CONFIG, f"{path} cannot be read", why=why, remedy="asv itself would refuse this file"
    )
