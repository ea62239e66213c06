"""Why an item did not end as done: one list for each state it may have ended in."""

from __future__ import annotations

from enum import StrEnum


class RejectionReason(StrEnum):
    """Why an item was decided against. A decision, never an error."""

    FORK = "fork"
    ARCHIVED = "archived"
    EMPTY = "empty"
    PRIVATE = "private"
    FEW_STARS = "few_stars"
    LANGUAGE = "language"
    DENIED = "denied"
    NO_PATCH = "no_patch"
    TITLE = "title"
    NO_CORE_FILE = "no_core_file"
    PATCH_TOO_LARGE = "patch_too_large"
    TOO_MANY_FILES = "too_many_files"
    NOT_PERFORMANCE = "not_performance"
    NO_SUITE = "no_suite"
    NO_RELEVANT_WORKLOAD = "no_relevant_workload"
    NO_SPEEDUP = "no_speedup"
    """Surely about as fast as before."""
    WEAKLY_AIMED = "weakly_aimed"
    """About as fast as before, in workloads that spend hardly any time in what changed: nothing better was found."""
    SLOWER = "slower"
    TRADE_OFF = "trade_off"
    """Faster in some relevant workloads, and slower in others."""
    INCONCLUSIVE = "inconclusive"
    """The samples do not decide; the detail says what would be needed."""
    NOT_CONFIRMED = "not_confirmed"
    """Measured again, it is not faster by its row's own rule."""
    ORACLE_BREAKS_TESTS = "oracle_breaks_tests"
    """Faster but wrong: a test that passes in every run of the base passes in none of the author's patch."""

    ORACLE_CHANGES_RESULTS = "oracle_changes_results"
    """Faster, and wrong: a timed benchmark returns something else with the author's patch."""

    NOT_GRADABLE = "not_gradable"
    """Through the exported grader, the author's patch does not get its reward, or a patch without effect gets one."""

    WITHDRAWN = "withdrawn"
    """A person removed the task from the dataset; the detail says who and why."""


SCREENED_OUT = frozenset(
    {
        RejectionReason.TITLE,
        RejectionReason.NO_CORE_FILE,
        RejectionReason.PATCH_TOO_LARGE,
        RejectionReason.TOO_MANY_FILES,
    }
)
"""Reasons the symbolic filter gives: such a pull request never was a candidate."""
NOT_FASTER = frozenset(
    {
        RejectionReason.NO_SPEEDUP,
        RejectionReason.WEAKLY_AIMED,
        RejectionReason.SLOWER,
        RejectionReason.TRADE_OFF,
        RejectionReason.INCONCLUSIVE,
    }
)
"""Reasons a measurement gives: it was measured, and is no task."""
WRONG = frozenset({RejectionReason.ORACLE_BREAKS_TESTS, RejectionReason.ORACLE_CHANGES_RESULTS})
"""Reasons why a faster patch is not a task."""


class SkipReason(StrEnum):
    """Why an item was left out of a run."""

    NOT_ASKED = "not_asked"
    PARTIAL_RUN = "partial_run"
    """Only whole months are released."""
    PROCESS_ENGINE = "process_engine"
    """Built in a folder, so there is no image to publish."""
    NO_REGISTRY = "no_registry"
    NOT_GRADED = "not_graded"
    """Gradings are switched off."""
    NOT_PUBLISHED = "not_published"
    """Its image is in no registry, so no one else could run it."""


class FailureKind(StrEnum):
    """Kind of error with which an item failed. Errors of a built image are named like the failed verification."""

    UNEXPECTED = "unexpected"
    """An error of ours: the log's tail has the traceback."""
    NESTING = "nesting"
    """Source that breaks a parser, nested without end."""
    TIMEOUT = "timeout"
    BUSY = "busy"
    DISK = "disk"
    """It wrote more than it may."""
    NO_SPACE = "no_space"
    """Its log says that the disk is full, which nothing confirms."""

    # GitHub and its offline substitutes
    VANISHED = "vanished"
    INCOMPLETE = "incomplete"
    OVERLOADED = "overloaded"
    FORBIDDEN = "forbidden"
    REQUEST = "request"
    GRAPHQL = "graphql"
    TOO_LARGE = "too_large"
    NOT_MERGED = "not_merged"
    NOT_A_PULL_REQUEST = "not_a_pull_request"
    NOT_IN_SOURCE = "not_in_source"

    # git, and the change of a pull request
    NAME = "name"
    GIT = "git"
    MIRROR = "mirror"
    MIRROR_BROKEN = "mirror_broken"
    SHALLOW = "shallow"
    COMMIT_MISSING = "commit_missing"
    FILES_MISSING = "files_missing"
    """The mirror has the commit, and lacks contents of its files."""
    NO_BASE = "no_base"
    UNSAFE_PATH = "unsafe_path"
    PATCH_MISMATCH = "patch_mismatch"
    MALFORMED_PATCH = "malformed_patch"

    # the model, and the statement
    MODEL_ANSWER = "model_answer"
    MODEL_REQUEST = "model_request"
    MODERATED = "moderated"
    """The endpoint's owner does not let the model see this text."""
    EVIDENCE = "evidence"
    """A judge twice quoted text that is not in the diff."""
    LEAK = "leak"

    # the repository's declarations and the lock
    ASV_CONFIG = "asv_config"
    PACKAGE_ROOT = "package_root"
    INTERPRETER = "interpreter"
    LOCK = "lock"
    ANCHOR = "anchor"
    SUBMODULE = "submodule"

    # building and running images
    BUILD = "build"
    CRATES = "crates"
    CREDENTIALS = "credentials"
    """Code of the build could have read those in the settings of index or proxy."""
    IMAGE_GONE = "image_gone"
    IMAGE_CHANGED = "image_changed"
    NOT_OURS = "not_ours"
    SESSION_GONE = "session_gone"
    HARNESS_CHANGED = "harness_changed"
    OTHER_ENGINE = "other_engine"
    SEVERAL_MACHINES = "several_machines"
    """Arms of one task were timed on different ones, as behind a daemon that has several."""
    NOTHING_KEPT = "nothing_kept"
    COLLECTOR = "collector"

    # asking an agent for a spec: `agent_` and `agents.protocol.AgentOutcome`
    AGENT_REFUSED = "agent_refused"
    """A gate did not let its edit pass: the attempt names it as its stage."""
    AGENT_GAVE_UP = "agent_gave_up"
    AGENT_TIMED_OUT = "agent_timed_out"
    AGENT_BUDGET = "agent_budget"
    AGENT_CRASHED = "agent_crashed"
    AGENT_LIMITED = "agent_limited"
    AGENT_OVERLOADED = "agent_overloaded"

    # verifications of an image
    DECLARED_COMMIT = "declared_commit"
    IMPORTS = "imports"
    BENCHMARKS = "benchmarks"
    ONE_BENCHMARK_RUNS = "one_benchmark_runs"
    TESTS_COLLECT = "tests_collect"
    NOTHING_PLANTED = "nothing_planted"
    NO_CREDENTIALS = "no_credentials"
    ORACLE_ABSENT = "oracle_absent"

    # measuring
    BENCHMARKS_FAIL = "benchmarks_fail"
    RELEVANCE_UNKNOWN = "relevance_unknown"
    """No workload is known to execute the change, and some could not be checked: none of them is timed."""
    SURVEY_UNFINISHED = "survey_unfinished"
    """Time ran out before a workload executed the change; the next attempt continues."""
    BASE_DOES_NOT_BUILD = "base_does_not_build"
    ORACLE_DOES_NOT_BUILD = "oracle_does_not_build"
    ORACLE_DOES_NOT_APPLY = "oracle_does_not_apply"
    ORACLE_BREAKS_BENCHMARKS = "oracle_breaks_benchmarks"
    TESTS_DO_NOT_RUN = "tests_do_not_run"

    # releasing
    NOT_A_TASK = "not_a_task"
    MISMATCH = "mismatch"
    DUPLICATE_TASK = "duplicate_task"
    RELEASED_TAG = "released_tag"
    SCHEMA_CHANGED = "schema_changed"
    PUBLISHED_TAG = "published_tag"
    HUB_REFUSED = "hub_refused"
    IMAGE_MISSING = "image_missing"
    NOT_PULLED_BACK = "not_pulled_back"
    UNREADABLE = "unreadable"

    # grading
    PROBE_NOT_MADE = "probe_not_made"
    """A probe's script failed in the task's container: whether it would be paid is unknown."""

    # replaying
    NO_PROCEDURE = "no_procedure"
    """Released before rows contained the procedure of their measurement."""
    RULE_UNKNOWN = "rule_unknown"
    """Judged by a rule that this version of the platform does not have."""
    WORKLOAD_DIFFERS = "workload_differs"
    """Some benchmark of the row cannot be timed here."""
    DISTURBED = "disturbed"
    """Base and control differ as much as a task would: the samples are worth nothing."""


TRANSIENT_KINDS = frozenset(
    {
        FailureKind.UNEXPECTED,
        FailureKind.TIMEOUT,
        FailureKind.NO_SPACE,
        FailureKind.INCOMPLETE,
        FailureKind.OVERLOADED,
        FailureKind.MIRROR_BROKEN,
        FailureKind.IMAGE_GONE,
        FailureKind.MODEL_ANSWER,
        FailureKind.EVIDENCE,
        FailureKind.SURVEY_UNFINISHED,
        FailureKind.AGENT_LIMITED,
        FailureKind.AGENT_OVERLOADED,
    }
)
"""Failures that another attempt may fix; the others wait for `force`, new inputs or new code."""
REPAIRABLE_KINDS = frozenset({FailureKind.FILES_MISSING, FailureKind.MIRROR, FailureKind.MIRROR_BROKEN})
"""Failures that a person repairs outside the platform, as the message says: every run tries again."""
