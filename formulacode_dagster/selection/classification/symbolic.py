"""The loose filter before the model: cheap, and wrong only on the side of letting through.

Real performance changes are titled "Pipeline" or "Dev", so no word is required in a title; a title is rejected only for
a word about something else, and not if title or body also mention performance.
"""

from __future__ import annotations

import re

from formulacode_dagster.models.errors import Rejection
from formulacode_dagster.models.paths import PathKind, kind_of
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import RejectionReason

POSITIVE = re.compile(
    r"\b(?:perf|performan(?:ce|t)|speed\w*|fast(?:er|est|path)?|quick(?:er|ly)|slow(?:er|ness|down\w*|ly)?"
    r"|optimi[sz]\w*|accelerat\w*|efficien\w*|inefficien\w*|cach(?:e|es|ed|ing)|lru_cache|memoi[sz]\w*|vectori[sz]\w*"
    r"|paralleli[sz]\w*|multi-?thread\w*|latency|throughput|benchmark\w*|asv|timeit|profil(?:e|ed|er|ing)|quadratic"
    r"|complexity|overhead|bottlenecks?|hot ?(?:path|spot|loop)s?|laz(?:y|ily)|batch(?:es|ed|ing)?|redundant"
    r"|unnecessary|recomput\w*|pre-?comput\w*|hoist\w*|numba|cythoni[sz]\w*|njit|simd|short-?circuit\w*"
    r"|gil|memory (?:usage|use|footprint)|allocations?|\d+(?:\.\d+)?x|O\((?:1|n|m|k|log)\b)"
    r"|\b\d+(?:\.\d+)?\s*(?:ns|us|µs|ms)\b|(?<!\d)\d+\s*\u00d7",
    re.IGNORECASE,
)
"""Words of performance, looked for in title and body."""

NEGATIVE = re.compile(
    r"\b(?:docs?|documentation|doc-?strings?|readme|change-?log|release notes?|whats-?new|typos?|spelling|copyright)\b"
    r"|\b(?:ci|github actions?|gh actions?|travis|appveyor|azure pipelines?|circle-?ci|cirrus|codecov|coverage)\b"
    r"|\bpre-?commit\b|\bautoupdate\b|\bdependabot\b|\brenovate\b|\block ?file\b|\bbump(?:s|ed|ing)?\b"
    r"|\b(?:update|upgrade|pin|unpin)\b.*\b(?:dependenc(?:y|ies)|requirements?)\b"
    r"|^(?:tst|tests?)\b\s*(?:\([^)]*\))?\s*:|^tst\b|\btests\b|\b(?:unit|flaky|failing|regression) test\b"
    r"|\b(?:lint|linter|linting|flake8|isort|ruff|pylint|mypy|codespell|whitespace|code style)\b"
    r"|\b(?:run|apply) black\b|\btype (?:hints?|annotations?)\b|^typ\b"
    r"|^merge (?:branch|pull|remote|tag)\b|^(?:prepare )?release\b"
    r"|^(?:version|v)?\s*\d+(?:\.\d+)+(?:\.?(?:rc|a|b|dev)\d*)?$",
    re.IGNORECASE,
)
"""Words of something else, looked for in the title."""

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)

MOST_PATCH_BYTES = 2_000_000
MOST_FILES = 500
"""Past these a change is no task anybody could be given."""


def screen(pr: PullRequest) -> None:
    """Return when *pr* is a candidate.

    Raises Rejection: `title`, `no_core_file`, `too_many_files` or `patch_too_large`. Sizes are those git counted, not
    those an API reported.
    """
    _screen_words(pr.facts.title, pr.facts.body)
    files = pr.change.files
    if not any(PathKind.CORE in (kind_of(file.path), kind_of(file.old_path or file.path)) for file in files):
        raise Rejection(RejectionReason.NO_CORE_FILE, f"none of its {len(files)} files is a source of the project")
    if len(files) > MOST_FILES:
        raise Rejection(RejectionReason.TOO_MANY_FILES, f"{len(files)} files, the limit is {MOST_FILES}")
    if pr.change.patch_bytes > MOST_PATCH_BYTES:
        detail = f"{pr.change.patch_bytes:,} bytes, the limit is {MOST_PATCH_BYTES:,}"
        raise Rejection(RejectionReason.PATCH_TOO_LARGE, detail)


def _screen_words(title: str, body: str) -> None:
    negative = NEGATIVE.search(title)
    if negative is None or POSITIVE.search(title) or POSITIVE.search(_COMMENT.sub(" ", body)):
        return
    raise Rejection(
        RejectionReason.TITLE, f"the title says {negative[0].strip()!r}, and there is no mention of performance"
    )
