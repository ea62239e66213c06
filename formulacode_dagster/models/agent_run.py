"""Runs of agents on released tasks, their trajectories, and reviews of tasks by people."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from .base import Frozen, MonthRow


class RunSource(StrEnum):
    """The program that ran the agent, and whose output was read."""

    HARBOR = "harbor"
    EVALUATE = "evaluate"
    FC_EVAL = "fc-eval"
    TERMINAL_BENCH = "terminal-bench"


class RunState(StrEnum):
    """Outcome of a run as a run; the work's own outcome is its reward."""

    GRADED = "graded"
    """The grader judged the work."""
    INFRASTRUCTURE = "infrastructure"
    """No judgement: a container, a model's endpoint or the grader failed. It counts nowhere, least of all as 0."""


class Contamination(StrEnum):
    """Possible contamination: the author's patch in the training data of the agent's model."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class HackVerdict(StrEnum):
    """A model's opinion of rewarded work."""

    HONEST = "honest"
    HACK = "hack"
    """It makes the benchmark faster, and not the program."""
    UNDECIDED = "undecided"
    """The two orders disagree, a quote was invented, or the diff is too long to be shown."""


class TaskFacts(Frozen):
    """Facts about a task by which results are divided."""

    merged_at: datetime = Field(description="when the author's patch was merged")
    category: str = Field(description="kind of performance change")
    difficulty: str = Field(description="`easy`, `medium` or `hard`")
    language: str = Field(description="compiled languages of the changed sources, `C + Cython`; or `Python`")
    workload_source: str = Field(description="source of the benchmarks: `base_suite`, `own_tests`, …")
    size: str = Field(description="range of the author's speed-up, `1.5–2×`")


class BenchmarkSpeedup(Frozen):
    """Speed-ups of one benchmark in one run."""

    benchmark: str
    speedup: float = Field(description="base / agent; 1 for rejected work")
    oracle_speedup: float = Field(description="base / the author's")


class AgentRun(MonthRow):
    """A run of an agent on a released task; the month is the task's."""

    task_id: str = Field(description="the task, `owner__repo-number`")
    run_id: str = Field(description="SHA-256 over the files of the run that was read: the same run is stored once")
    release: str = Field(description="tag of the release whose task it was, `formulacode@2026-03`")
    source: RunSource = Field(description="`harbor`, `evaluate`, `fc-eval` or `terminal-bench`")
    name: str = Field(description="the run's name there, as of a trial")
    agent: str = Field(description="name of the agent")
    agent_version: str = Field(default="", description="its version; empty if not recorded")
    model: str = Field(default="", description="the model it used, `provider/name`; empty without one")
    settings: dict[str, str] = Field(default_factory=dict, description="arguments it ran with, secrets redacted")
    state: RunState = Field(description="`graded`, or `infrastructure` if nothing was judged; the latter never counts")
    error: str = Field(default="", description="class of the error that was recorded; a graded run may have one")
    detail: str = Field(default="", description="the error's or the grader's message, shortened")
    reason: str = Field(default="", description="the grader's verdict: `faster`, `unchanged`, `tests_fail`, …")
    reward: float | None = Field(
        default=None, description="log speed-up / log of the author's, 0 to 1; null unless graded"
    )
    speedup: float | None = Field(default=None, description="geometric mean of base / agent; null if not timed")
    speedup_low: float | None = Field(default=None, description="lower bound of its 95 % interval")
    speedup_high: float | None = Field(default=None, description="upper bound of it")
    oracle_speedup: float | None = Field(default=None, description="the author's speed-up in the same session")
    benchmarks: tuple[BenchmarkSpeedup, ...] = Field(default=(), description="speed-ups by benchmark")
    tests: int | None = Field(default=None, description="tests that had to pass; null if none was run")
    tests_failed: int | None = Field(default=None, description="those that the agent's changes broke")
    dollars: float | None = Field(default=None, description="cost of the model; null if not recorded")
    tokens_in: int | None = Field(default=None, description="tokens sent, cached ones included")
    tokens_cached: int | None = Field(default=None, description="those of them that were cached")
    tokens_out: int | None = Field(default=None, description="tokens received")
    turns: int | None = Field(default=None, description="the agent's steps in its trajectory; null without one")
    agent_seconds: float | None = Field(default=None, description="wall-clock time of the agent")
    seconds: float | None = Field(default=None, description="wall-clock time of the whole run")
    started_at: datetime | None = Field(default=None, description="when it started")
    diff_sha256: str = Field(default="", description="hash of the agent's changes, stored as a blob; empty without")
    statement_sha256: str = Field(description="hash of the statement that the task gives")
    image_digest: str = Field(description="digest of the task's image")
    task_sha256: str = Field(description="hash of what the grader was told about the task; empty if it did not start")
    grader_sha256: str = Field(description="hash of the grader; empty if it did not start")
    regrade_of: str = Field(
        default="",
        description="the run whose recorded changes were graded again; empty if an agent ran. Sums leave it out",
    )
    taken_at: datetime = Field(description="when it was read into the database")
    task: TaskFacts | None = Field(default=None, description="facts about the task; null before they were recorded")
    contaminated: Contamination = Field(
        default=Contamination.UNKNOWN,
        description="`yes` if the task was merged before the model's training data ended; `unknown` for other models",
    )
    hack: HackVerdict | None = Field(default=None, description="newest verdict of the hack judge; null without one")

    @property
    def contestant(self) -> str:
        """`agent version (model)`: what a row of the table of results is about."""
        return contestant_of(self.agent, self.agent_version, self.model)


def contestant_of(agent: str, version: str, model: str) -> str:
    """Return the name of an agent with its version and model."""
    return " ".join(part for part in (agent, version, f"({model})" if model else "") if part)


class HackOpinion(Frozen):
    """An answer of the hack judge, in one order of what it was shown."""

    order: str = Field(description="`agent_first` or `agent_last`: when it saw the agent's changes")
    is_hack: bool
    reason: str
    quotes: tuple[str, ...] = Field(description="lines of the agent's changes that show a hack")
    is_dropped: bool = Field(description="a hack without quotes, or with one that is not in the changes")


class HackJudgement(MonthRow):
    """A model's judgement of a rewarded run; by another model or rubric it is another row."""

    run_id: str = Field(description="the run")
    task_id: str = Field(description="its task")
    model: str = Field(description="the model that judged")
    rubric: str = Field(description="version of the rubric")
    verdict: HackVerdict = Field(description="`honest`, `hack` or `undecided`")
    opinions: tuple[HackOpinion, ...] = Field(description="its answers, one for each order")
    dollars: float = Field(description="cost of the answers")
    judged_at: datetime = Field(description="when")


class Estimate(Frozen):
    """A mean over tasks with its bootstrap interval."""

    value: float
    low: float = Field(description="lower bound of the 95 % interval over tasks and runs")
    high: float = Field(description="upper bound of it")
    tasks: int = Field(description="tasks in it")


class StratumScore(Frozen):
    """An agent's score on the tasks that have something in common."""

    by: str = Field(description="field of `TaskFacts`: `category`, `difficulty`, `language`, `workload_source`, `size`")
    name: str = Field(description="its value")
    score: Estimate = Field(description="mean reward over these tasks")
    runs: int = Field(description="counted runs")


class AgentResult(MonthRow):
    """An agent's results on the tasks of a release: a row of the table of results."""

    contestant: str = Field(description="agent, version and model")
    agent: str = Field(description="name of the agent")
    agent_version: str = Field(description="its version; empty if not recorded")
    model: str = Field(description="the model it used; empty without one")
    release: str = Field(description="tag of the newest release of the month when the sums were made")
    release_tasks: int = Field(description="tasks of that release")
    tasks: int = Field(description="tasks with a counted run")
    runs: int = Field(description="counted runs: graded, and no regrade")
    infrastructure: int = Field(description="runs without a judgement, in no sum")
    regrades: int = Field(description="regrades of runs, in no sum")
    score: Estimate | None = Field(description="mean reward over tasks; null without a counted run")
    clean_score: Estimate | None = Field(
        default=None, description="the same over the runs whose `contaminated` is `no`; null without any"
    )
    contamination: dict[Contamination, int] = Field(
        default_factory=dict, description="counted runs by their mark of contamination"
    )
    hack_adjusted: Estimate | None = Field(
        default=None, description="the score with 0 for runs judged a hack; null unless each rewarded run was judged"
    )
    hack_verdicts: dict[HackVerdict, int] = Field(default_factory=dict, description="judged runs by verdict")
    strata: tuple[StratumScore, ...] = Field(default=(), description="scores by category, language, size, …")
    half: Estimate | None = Field(description="share of runs with a reward of at least 0.5, mean over tasks")
    nearly: Estimate | None = Field(description="share of runs with a reward of at least 0.9, mean over tasks")
    advantages: tuple[float | None, ...] = Field(description="FormulaCode's advantage L1 to L4, mean over tasks")
    pass_curve: dict[int, float] = Field(description="pass@k by k, up to the least number of runs of a task")
    dollars: float | None = Field(description="mean cost of a run over tasks; null unless known for every run")
    is_on_front: bool = Field(description="whether no other agent is both as cheap and as good, and better in one")
    agent_seconds: float | None = Field(description="median wall-clock time of the agent; null if unknown")
    turns: float | None = Field(description="median number of the agent's steps; null if unknown")
    reasons: dict[str, int] = Field(description="counted runs by the grader's verdict")


class Trajectory(MonthRow):
    """The steps of an agent in one run, secrets redacted; the text itself is a compressed blob."""

    run_id: str = Field(description="the run")
    task_id: str = Field(description="its task")
    format: str = Field(description="`ATIF-v1.8` …, or empty for plain text")
    steps: int = Field(description="number of steps, of everybody")
    bytes: int = Field(description="size of the text as stored, uncompressed")
    redacted: int = Field(description="places where a secret was redacted")
    sha256: str = Field(description="hash of the text; the blob's key")


class ReviewVerdict(StrEnum):
    """A person's opinion about a task."""

    APPROVED = "approved"
    """Statement, patch and workloads belong together, and the task is fair."""
    DOUBTFUL = "doubtful"
    REJECTED = "rejected"


class Review(MonthRow):
    """A person's review of a task; later ones are added, none is changed."""

    task_id: str = Field(description="the task")
    reviewed_at: datetime = Field(description="when")
    reviewed_by: str = Field(min_length=1, description="name of the person")
    verdict: ReviewVerdict = Field(description="`approved`, `doubtful` or `rejected`")
    note: str = Field(min_length=1, description="what was seen, and why")
    release: str = Field(description="tag of the release that the person looked at; empty if it was none")
