import pytest

from formulacode_dagster.models.classification import Category, Difficulty
from sandbox.model.rules import judge

PATCH = "diff --git a/pkg/core.py b/pkg/core.py\n--- a/pkg/core.py\n+++ b/pkg/core.py\n@@ -1 +1 @@\n-a = 1\n+b = 2\n"


@pytest.mark.parametrize(
    ("title", "body", "category"),
    [
        ("Cache the parsed header", "", Category.CACHE_AND_REUSE),
        ("Vectorize the distance matrix", "", Category.USE_HIGHER_LEVEL_SYSTEM),
        ("Avoid the quadratic scan in merge", "", Category.USE_BETTER_ALGORITHM),
        ("Dev", "This makes lookups faster by using a set.", Category.USE_BETTER_DATA_STRUCTURE_AND_LAYOUT),
        ("Move the loop to C", "It is 10 times faster", Category.USE_LOWER_LEVEL_SYSTEM),
        ("Pipeline", "Timings: 12.3 ms -> 4.1 ms", Category.UNCATEGORIZED),
        ("Skip the copy", "The same answer without a copy, faster.", Category.REMOVE_OR_REDUCE_WORK),
        ("Avoid repeated scans", "", Category.REMOVE_OR_REDUCE_WORK),
        ("Run the chunks in parallel", "", Category.USE_PARALLELIZATION),
        ("PERF: hoist the invariant", "", Category.DO_IT_EARLIER_BATCH_THROTTLE),
    ],
)
def test_words_of_speed_make_a_performance_change(title: str, body: str, category: Category) -> None:
    judgement = judge(title, body, PATCH)
    assert judgement.is_performance
    assert judgement.category is category
    assert judgement.reason.startswith("sandbox rule: ")


@pytest.mark.parametrize(
    ("title", "body"),
    [
        ("docs: explain the options", ""),
        ("Bump numpy from 1 to 2", ""),
        ("Fix the sign of the offset", "It was wrong for negative values."),
        ("Add a rolling median", ""),
        ("Refactor the parser", "No change in performance is expected."),
        ("Refactor the parser", "Pure cleanup, performance-neutral."),
        ("Rename helper", "This is not faster, only clearer"),
        ("Avoid a crash on empty input", ""),
        ("Remove redundant import", "<!-- did you measure the performance? -->"),
        ("Wait longer", "The timeout is 20 s now"),
        ("Register the operation rv32.parallel_mov", ""),
    ],
)
def test_everything_else_is_not_performance(title: str, body: str) -> None:
    judgement = judge(title, body, PATCH)
    assert not judgement.is_performance
    assert judgement.category is Category.UNCATEGORIZED


def test_the_patch_alone_never_makes_the_verdict() -> None:
    assert not judge("Rename helper", "", PATCH + "+cache = faster\n").is_performance


@pytest.mark.parametrize(
    ("lines", "files", "difficulty"),
    [
        (20, 2, Difficulty.EASY),
        (21, 1, Difficulty.MEDIUM),
        (5, 3, Difficulty.MEDIUM),
        (121, 1, Difficulty.HARD),
        (9, 7, Difficulty.HARD),
    ],
)
def test_difficulty_grows_with_lines_and_files(lines: int, files: int, difficulty: Difficulty) -> None:
    patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n" * files + "+x\n" * lines
    assert judge("Faster", "", patch).difficulty is difficulty


def test_compiled_sources_tell_the_category_when_no_word_does() -> None:
    patch = PATCH.replace("core.py", "_core.c")
    assert judge("Faster", "", patch).category is Category.USE_LOWER_LEVEL_SYSTEM
