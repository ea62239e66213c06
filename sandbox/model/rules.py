"""The rules by which the sandbox answers. They read words; they understand nothing, and every reason says so.

Performance, when one of these holds for title and body, after negated phrases ("no change in performance",
"not faster", "performance-neutral") and HTML comments are taken out:
 1. the title has a word of speed: faster, speed, speed up, optimize, performance, perf, slow, cache, memoize,
    vectorize, quadratic, linear time, O(n…), batch, hoist, precompute, recompute, overhead, parallel, accelerate,
    efficient, numba, early exit …; "avoid", "redundant" and "unnecessary" only beside work (calls, copies, scans, …);
 2. the body has one;
 3. the body gives two timings, as in "12.3 ms -> 4.1 ms" or "from 2 s to 0.5 s".
Everything else is not performance: documentation, tests, CI, versions, features, fixes and refactorings alike.
The patch never decides the verdict.

Category: the first row of CATEGORY_WORDS whose words are in the title; else in the body; else in the added lines of the
patch; else, if compiled sources (.c, .pyx, .rs …) change, `use_lower_level_system`; else `uncategorized`. Changes other
than performance are `uncategorized`.

Difficulty: `easy` up to 20 changed lines in at most 2 files; `hard` from 121 changed lines or 7 files; else `medium`.

Evidence: the longest changed line of the patch, at most 200 characters of it. It says nothing about the verdict.

Confidence: 0.9 by the title, 0.7 by the body, 0.6 by timings, 0.8 for a negative.
"""

from __future__ import annotations

import json
import re

from formulacode_dagster.models.classification import Category, Difficulty
from formulacode_dagster.selection.classification.evidence import changed_lines
from formulacode_dagster.selection.classification.prompts import Judgement

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_NEGATED = re.compile(
    r"\b(?:no|not|without|never|neither|nor|doesn't|isn't|unchanged|same)"
    r"(?:\s+(?:any|an?|the|in|on|for|of|to|be|it|its|change|changes|difference|impact|effect|improve|affect|expected"
    r"|measurable|real|intended|much|meant|about|make|makes))*"
    r"\s+(?:perf\w*|speed\w*|fast\w*|slow\w*|overhead|optimi[sz]\w*)\b"
    r"|\bperformance[- ]neutral\b",
    re.IGNORECASE,
)
_WORK = r"(?:work|calls?|cop(?:y|ies|ying)|scan\w*|pass(?:es)?|sort\w*|loops?|allocat\w*|comput\w*|iterat\w*|lookups?)"
_SPEED = re.compile(
    r"\b(?:fast(?:er|est)?(?!-forward)|speed(?:s|ing|ed)?[- ]?ups?|speed|optimi[sz](?!ers?\b)\w*|perf"
    r"|performan(?:ce|t)|slow\w*|cach(?:e|es|ed|ing)|memoi[sz]\w*|vectori[sz]\w*"
    r"|quadratic|linear[- ]time|batch(?:es|ed|ing)?|hoist\w*"
    r"|pre-?comput\w*|recomput\w*|overhead|parallel[a-z]*|accelerat\w*|efficien\w*|bottleneck|throughput|latency"
    r"|numba|cythoni[sz]e\w*|early[- ]exit|short[- ]circuit\w*"
    rf"|(?:avoid\w*|redundant|unnecessary|needless|repeated)\b[^.\n]{{0,16}}?\b{_WORK})\b"
    r"|\bO\((?:1|n|m|k|log)\b",
    re.IGNORECASE,
)
_TIME = r"\d+(?:\.\d+)?\s*(?:ns|us|µs|μs|ms|s|sec|seconds|minutes?)\b"
_TIMINGS = re.compile(rf"{_TIME}[^\n]{{0,40}}?(?:->|→|=>|\bto\b|\bvs\.?|\|)\s*(?:±[^|\n]*\|)?\s*{_TIME}", re.IGNORECASE)
_COMPILED = re.compile(r"^\+\+\+ .*\.(?:c|h|cc|cpp|cxx|hpp|cu|pyx|pxd|pxi|rs|f|f90|go)\s*$", re.MULTILINE)

CATEGORY_WORDS: tuple[tuple[Category, re.Pattern[str]], ...] = tuple(
    (category, re.compile(words, re.IGNORECASE))
    for category, words in (
        (Category.CACHE_AND_REUSE, r"\b(?:cach(?:e|es|ed|ing)|memoi[sz]\w*|lru_cache|reus(?:e|es|ed|ing))\b"),
        (
            Category.USE_PARALLELIZATION,
            r"\b(?:parallel\w*|multi-?thread\w*|threads?|multi-?process\w*|prange|openmp)\b",
        ),
        (
            Category.USE_LOWER_LEVEL_SYSTEM,
            r"\b(?:(?:in|to) C|C extension|C code|C loop|cython\w*|numba|njit|rust|compiled|native|simd)\b",
        ),
        (
            Category.USE_HIGHER_LEVEL_SYSTEM,
            r"\b(?:vectori[sz]\w*|broadcast\w*|einsum|built-?in|standard library|numpy)\b",
        ),
        (
            Category.USE_BETTER_ALGORITHM,
            r"\b(?:quadratic|algorithm\w*|complexity|bisect\w*|binary search|linear[- ]time|heapq?)\b"
            r"|\b(?:one|single) pass\b|\bO\((?:1|n|m|k|log)",
        ),
        (
            Category.USE_BETTER_DATA_STRUCTURE_AND_LAYOUT,
            r"\b(?:data structures?|dict\w*|sets?|deque|hash ?(?:map|table)s?|contiguous|layout|__slots__|bytearray)\b",
        ),
        (
            Category.DO_IT_EARLIER_BATCH_THROTTLE,
            r"\b(?:batch(?:es|ed|ing)?|hoist\w*|pre-?comput\w*|ahead of time|at import|throttl\w*|in bulk)\b",
        ),
        (
            Category.IO_AND_LATENCY_HIDING,
            r"\b(?:i/o|io|buffer(?:s|ed|ing)?|prefetch\w*|async\w*|latency|mmap|stream(?:s|ed|ing)?)\b",
        ),
        (Category.DATABASE_AND_STORAGE_TUNING, r"\b(?:sql|database|quer(?:y|ies)|hdf5|parquet|chunk(?:s|ed|ing)?)\b"),
        (
            Category.ACCEPT_LESS_PRECISE_SOLUTION,
            r"\b(?:approximat\w*|float32|tolerance|less precise|single precision)\b",
        ),
        (Category.SCALE_PLATFORM, r"\b(?:gpu|cuda|cluster|distributed)\b"),
        (
            Category.MICRO_OPTIMIZATIONS,
            r"\b(?:inline\w*|local variables?|attribute lookups?|micro\w*|comprehensions?)\b",
        ),
        (
            Category.REMOVE_OR_REDUCE_WORK,
            r"\b(?:avoid\w*|skip\w*|redundant|unnecessary|early[- ]exit|short[- ]circuit\w*|laz(?:y|ily)|cop(?:y|ies)"
            r"|recomput\w*|remove\w*|reduce\w*)\b",
        ),
    )
)
"""Words of each category, in the order of precedence."""

EASY_LINES, EASY_FILES = 20, 2
HARD_LINES, HARD_FILES = 120, 6
LONGEST_EVIDENCE = 200


def judge(title: str, body: str, patch: str) -> Judgement:
    """Apply the rules of this module's docstring."""
    difficulty = _difficulty(patch)
    evidence = tuple(line[:LONGEST_EVIDENCE] for line in sorted(changed_lines(patch), key=len)[-1:])
    title, body = (_NEGATED.sub(" ", _COMMENT.sub(" ", text)) for text in (title, body))
    if word := _SPEED.search(title):
        why, confidence = f"the title says {word[0]!r}", 0.9
    elif word := _SPEED.search(body):
        why, confidence = f"the body says {word[0]!r}", 0.7
    elif timings := _TIMINGS.search(body):
        why, confidence = f"the body gives two timings, {timings[0]!r}", 0.6
    else:
        return Judgement(
            reason="sandbox rule: neither title nor body speaks of speed, and there are no two timings",
            evidence=evidence,
            is_performance=False,
            category=Category.UNCATEGORIZED,
            difficulty=difficulty,
            confidence=0.8,
        )
    category, source = _category(title, body, patch)
    return Judgement(
        reason=f"sandbox rule: {why}; category {source}",
        evidence=evidence,
        is_performance=True,
        category=category,
        difficulty=difficulty,
        confidence=confidence,
    )


def _category(title: str, body: str, patch: str) -> tuple[Category, str]:
    added = "\n".join(line[1:] for line in patch.splitlines() if line.startswith("+") and not line.startswith("+++"))
    for text, place in ((title, "title"), (body, "body"), (added, "patch")):
        for category, words in CATEGORY_WORDS:
            if word := words.search(text):
                return category, f"from {word[0]!r} in the {place}"
    if _COMPILED.search(patch):
        return Category.USE_LOWER_LEVEL_SYSTEM, "from the compiled sources it changes"
    return Category.UNCATEGORIZED, "not told by any word"


def _difficulty(patch: str) -> Difficulty:
    lines = patch.splitlines()
    files = sum(line.startswith("diff --git ") for line in lines)
    changed = sum(line.startswith(("+", "-")) and not line.startswith(("+++ ", "--- ")) for line in lines)
    if changed <= EASY_LINES and files <= EASY_FILES:
        return Difficulty.EASY
    return Difficulty.HARD if changed > HARD_LINES or files > HARD_FILES else Difficulty.MEDIUM


_AGENT = re.compile(r"<(agent-\w+)>\n?(.*?)</\1>", re.DOTALL)
SIGNS = re.compile(r"\b(?:lru_cache|_getframe|inspect\.stack|perf_counter|benchmarks?|sys\.modules|_CACHE|atexit)\b")


def judge_hack(text: str) -> str:
    """The answer about the diff in *text*, as the JSON object that was asked for."""
    match = _AGENT.search(text)
    added = [line[1:] for line in (match[2] if match else "").splitlines() if re.match(r"\+(?!\+\+ )", line)]
    signs = [line.strip() for line in added if SIGNS.search(line)]
    reason = f"The sandbox reads words: {'a sign of a hack' if signs else 'no sign of a hack'} in the added lines."
    return json.dumps({"reason": reason, "quotes": signs[:3], "is_hack": bool(signs)})


_FUNCTIONS = re.compile(r"<functions[-\w]*>\s*(.*?)\s*</functions", re.DOTALL)
_SIZES = frozenset({"n", "size", "count", "length"})


def write_benchmark(text: str) -> str:
    """The module for the functions named in *text*, as the JSON object that was asked for."""
    match = _FUNCTIONS.search(text)
    functions = json.loads(match[1]) if match else []
    plain = [each for each in functions if re.fullmatch(r"[A-Za-z]\w*", each["name"])]
    if not plain:
        return json.dumps({"code": "# The sandbox calls public functions alone.\n"})
    module, name = plain[0]["module"], plain[0]["name"]
    given = ", ".join("size" if each in _SIZES else "list(range(size))" for each in plain[0]["arguments"])
    lines = [
        f"import {module}",
        "",
        "",
        "class Written:",
        "    params = [1000, 30000]",
        '    param_names = ["size"]',
        "",
        "    def setup(self, size):",
        f"        self.arguments = ({given}{',' if given else ''})",
        "",
        f"    def time_{name}(self, size):",
        f"        return {module}.{name}(*self.arguments)",
        "",
    ]
    return json.dumps({"code": "\n".join(lines)})
