"""The settings: one model is the only list of them. `.env.example` and the tables of the documentation follow from it.

Nothing here is called while definitions load: a run reads the environment when it first needs a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import Stage

from .environment import prepare_environment
from .setting_types import (
    AbsolutePath,
    AgentLimits,
    AgentSetting,
    EngineChoice,
    FailureBudget,
    Names,
    PoolLimits,
    RegistryMode,
    is_secret,
    parts_of,
    pool_limits,
    what_it_can_be,
)


class Settings(BaseSettings):
    """Every setting: its environment variable (`alias`), type, bounds, default and meaning."""

    # an empty variable stands for the default; a value that cannot be may be a secret in the wrong place
    model_config = SettingsConfigDict(
        case_sensitive=True,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

    home: AbsolutePath = Field(Path(".formulacode"), alias="FC_HOME")
    """folder of all local state: embedded database, mirrors, builds, reports"""
    database_url: SecretStr = Field(SecretStr(""), alias="FC_DATABASE_URL")
    """Postgres of the platform; empty: the embedded one under FC_HOME"""
    database_connections: int = Field(18, alias="FC_DATABASE_CONNECTIONS", ge=4)
    """most connections to it of one process; each run, helper and worker is one, and the server has to have them all"""
    database_statement_seconds: int = Field(3600, alias="FC_DATABASE_STATEMENT_SECONDS", ge=0)
    """after so long the server ends a statement, those of backups and migrations aside; 0: its own limit"""
    database_lock_seconds: int = Field(600, alias="FC_DATABASE_LOCK_SECONDS", ge=0)
    """after so long it ends a wait for a lock; 0: its own limit"""
    database_idle_seconds: int = Field(600, alias="FC_DATABASE_IDLE_SECONDS", ge=0)
    """after so long it ends a transaction in which nothing is asked; 0: its own limit"""
    database_behind_pooler: bool = Field(False, alias="FC_DATABASE_BEHIND_POOLER")
    """FC_DATABASE_URL is a pooler in transaction mode, such as PgBouncer: nothing is prepared, or set for longer"""
    dagster_database_url: SecretStr = Field(SecretStr(""), alias="FC_DAGSTER_DATABASE_URL")
    """Postgres of Dagster's own storage; empty: SQLite under FC_HOME"""
    gh_tokens: SecretStr = Field(SecretStr(""), alias="GH_TOKENS")
    """GitHub tokens, comma separated; public_repo is enough"""
    github_api_url: str = Field("https://api.github.com", alias="GITHUB_API_URL")
    """GitHub's API"""
    github_clone_url: str = Field("https://github.com", alias="GITHUB_CLONE_URL")
    """where repositories are cloned from; file:///folder works"""
    offline_source: str = Field("", alias="FC_OFFLINE_SOURCE")
    """files, or a folder of files or of mirrors, to take in instead of asking GitHub; see README"""
    minimum_stars: int = Field(500, alias="FC_MINIMUM_STARS", ge=0)
    """repositories with fewer stars are not tracked, unless they are allowed"""
    languages: Names = Field(
        ("Python", "Cython", "C", "C++", "Cuda", "Fortran", "Rust", "Jupyter Notebook"), alias="FC_LANGUAGES"
    )
    """primary languages, in GitHub's words, of tracked repositories; any: whichever"""
    suite_repositories: Names = Field(
        ("astropy/astropy-benchmarks", "pierreglaser/joblib_benchmarks", "jeremiedbb/scikit-learn_benchmarks"),
        alias="FC_SUITE_REPOSITORIES",
    )
    """repositories of benchmarks for others; tried for one that is part of their name and that their suite names"""
    mirrors_dir: AbsolutePath | None = Field(None, alias="FC_MIRRORS_DIR")
    """bare mirrors; empty: mirrors/ under FC_HOME"""
    mirrors_gb: float = Field(50, alias="FC_MIRRORS_GB", ge=0)
    """gigabytes they may take before the least recently used are removed; 0: no limit"""
    llm_model: str = Field("", alias="LLM_MODEL")
    """name of the model that classifies"""
    llm_base_url: str = Field("https://api.openai.com/v1", alias="LLM_BASE_URL")
    """any OpenAI-compatible endpoint"""
    llm_api_key: SecretStr = Field(SecretStr(""), alias="LLM_API_KEY")
    """key of that endpoint"""
    classification_judge: str = Field("", alias="FC_CLASSIFICATION_JUDGE")
    """model of that endpoint that judges again what is accepted, and a no in doubt; LLM_MODEL: asked in another way"""
    statement_writer: str = Field("", alias="FC_STATEMENT_WRITER")
    """model of that endpoint that puts what issues report more clearly in problem statements; empty: a template does"""
    statement_judges: str = Field("", alias="FC_STATEMENT_JUDGES")
    """models of it, comma separated, that judge whether a statement tells a mechanism; one is asked in two ways"""
    workload_writer: str = Field("", alias="FC_WORKLOAD_WRITER")
    """model of it that writes a benchmark where nothing else executes a change; empty: none does"""
    llm_max_tokens: int = Field(2048, alias="LLM_MAX_TOKENS", ge=1)
    """most tokens of one answer"""
    llm_temperature: float = Field(0, alias="LLM_TEMPERATURE", ge=0, le=2)
    """how much answers may vary; left out where a model does not let itself be told, and stored with each answer"""
    llm_seconds: int = Field(120, alias="LLM_SECONDS", ge=1)
    """time limit of one answer"""
    llm_tokens_per_month: int = Field(20_000_000, alias="LLM_TOKENS_PER_MONTH", ge=0)
    """token budget of one month of the dataset"""
    llm_dollars_per_month: float | None = Field(None, alias="LLM_DOLLARS_PER_MONTH", ge=0)
    """dollar budget of one month; needs the prices below; empty: none"""
    llm_dollars_per_million_in: float = Field(0, alias="LLM_DOLLARS_PER_MILLION_IN", ge=0)
    """price of a million prompt tokens"""
    llm_dollars_per_million_out: float = Field(0, alias="LLM_DOLLARS_PER_MILLION_OUT", ge=0)
    """price of a million answer tokens"""
    engine: EngineChoice = Field(
        EngineChoice.auto,
        alias="FC_ENGINE",
        description="docker; process: folders of this machine; auto: Docker, and process for the demo's samples alone "
        "where no daemon answers",
    )
    os_image: str = Field("python:{python}-slim-bookworm", alias="FC_OS_IMAGE")
    """OS image; {python} is replaced by 3.12 and the like"""
    build_network: str = Field("default", alias="FC_BUILD_NETWORK")
    """Docker network of builds: default, or host"""
    build_cgroup: str = Field("", alias="FC_BUILD_CGROUP")
    """cgroup or slice of Docker's machine below which builds run, held to its limits"""
    ca_bundle: AbsolutePath | None = Field(
        None,
        alias="FC_CA_BUNDLE",
        description="CA certificates for package indexes while building, never part of an image; "
        "empty: SSL_CERT_FILE, or else the system's",
    )
    cpus: float = Field(2, alias="FC_CPUS", gt=0)
    """CPUs of a build or measurement"""
    memory_mb: int = Field(4096, alias="FC_MEMORY_MB", ge=256)
    """memory of a build or measurement"""
    disk_mb: int = Field(10240, alias="FC_DISK_MB", ge=256)
    """what code may write to disk in a container before it is ended"""
    build_seconds: int = Field(1800, alias="FC_BUILD_SECONDS", ge=1)
    """time limit of one build"""
    benchmark_seconds: int = Field(120, alias="FC_BENCHMARK_SECONDS", ge=1)
    """time limit of one benchmark process"""
    sample_seconds: float = Field(0.05, alias="FC_SAMPLE_SECONDS", gt=0)
    """seconds of timing in one sample"""
    measure_seconds: int = Field(600, alias="FC_MEASURE_SECONDS", ge=10)
    """seconds that surveys, warm-up and rounds of one task may take; builds, and looking for workloads, come on top"""
    measured_at_once: int = Field(1, alias="FC_MEASURED_AT_ONCE", ge=1)
    """tasks built, timed and tested at the same time; more than one disturb each other's timings"""
    backup_dir: AbsolutePath | None = Field(None, alias="FC_BACKUP_DIR")
    """folder of the backups; empty: backups/ under FC_HOME"""
    backup_store: str = Field("", alias="FC_BACKUP_STORE")
    """s3://bucket/prefix that each backup is copied to; empty: none"""
    backup_endpoint: str = Field("", alias="FC_BACKUP_ENDPOINT")
    """address of that store; empty: Amazon's"""
    backup_recipient: str = Field("", alias="FC_BACKUP_RECIPIENT")
    """public key of age (age1…) that backups are encrypted for; empty: they are not"""
    json_log: AbsolutePath | None = Field(None, alias="FC_JSON_LOG")
    """file that runs append their logs to, an object of JSON a line with run, month and item; empty: none"""
    otlp_endpoint: str = Field("", alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    """collector of OpenTelemetry that spans of stages and items are sent to by OTLP over HTTP; empty: none"""
    otlp_headers: SecretStr = Field(SecretStr(""), alias="OTEL_EXPORTER_OTLP_HEADERS")
    """headers for that collector, name=value with commas between them"""
    alert_webhook: SecretStr = Field(SecretStr(""), alias="FC_ALERT_WEBHOOK")
    """URL that is told of failed runs, failed checks and late months, by a POST of JSON; empty: none"""
    alert_slack: SecretStr = Field(SecretStr(""), alias="FC_ALERT_SLACK")
    """incoming webhook of Slack that is told the same; empty: none"""
    alert_mail_to: Names = Field((), alias="FC_ALERT_MAIL_TO")
    """addresses, comma separated, that are told the same by FC_SMTP_URL; empty: none"""
    alert_mail_from: str = Field("formulacode@localhost", alias="FC_ALERT_MAIL_FROM")
    """sender of those mails"""
    smtp_url: SecretStr = Field(SecretStr(""), alias="FC_SMTP_URL")
    """their server: smtp://user:password@host:587, over TLS, or smtps://host:465; empty: smtp://localhost"""
    dagster_url: str = Field("", alias="FC_DAGSTER_URL")
    """where people reach the UI, for links in messages; empty: none"""
    backups_kept: int = Field(7, alias="FC_BACKUPS_KEPT", ge=1)
    """backups that the daily job keeps, in the folder and in the store"""
    helper_runs: int = Field(0, alias="FC_HELPER_RUNS", ge=0)
    """runs that may help one run of environments, images, measurements or published images; 0: it works alone"""
    lease_seconds: int = Field(60, alias="FC_LEASE_SECONDS", ge=3)
    """after so long without a sign of life, what a helper was at is done by others"""
    pools: PoolLimits = Field(
        ("github=2", "llm=2", "build=1", "measure=1"),
        alias="FC_POOLS",
        examples=["build=2,measure=2"],
        description="runs that may ask GitHub, ask the model, build, and measure at the same time; a pool that is not "
        "named keeps what was set in the UI",
    )
    images_gb: float = Field(100, alias="FC_IMAGES_GB", ge=0)
    """gigabytes that images may take before housekeeping removes those needed least recently; 0: no limit"""
    build_cache_gb: float = Field(20, alias="FC_BUILD_CACHE_GB", ge=0)
    """the same of our part of Docker's build cache, of what no image lies on"""
    attempts_days: int = Field(180, alias="FC_ATTEMPTS_DAYS", ge=0)
    """days that tries at locks and images, and logs, are kept once nothing needs them; 0: for ever"""
    runs_days: int = Field(180, alias="FC_RUNS_DAYS", ge=0)
    """days that Dagster's runs are kept once they show nothing's latest state; 0: for ever"""
    agent: AgentSetting = Field(
        AgentSetting.none,
        alias="FC_AGENT",
        description="coding agent that is asked where no repair rule knows more: none, claude, codex, gemini, command, "
        "or auto: the first of the three that is installed",
    )
    agent_command: str = Field("", alias="FC_AGENT_COMMAND")
    """program that FC_AGENT=command runs: it reads the task from its input and edits edit.toml"""
    agent_model: str = Field("", alias="FC_AGENT_MODEL")
    """model that the agent is told to take; empty: its own choice"""
    agent_base_url: str = Field("", alias="FC_AGENT_BASE_URL")
    """where that model answers; empty: the public endpoint of the agent's maker"""
    agent_api_key: SecretStr = Field(SecretStr(""), alias="FC_AGENT_API_KEY")
    """key of that endpoint; the agent itself never holds it"""
    agent_dollars_per_million_in: float = Field(0, alias="FC_AGENT_DOLLARS_PER_MILLION_IN", ge=0)
    """price of a million prompt tokens of that model; 0: FC_AGENT_DOLLARS holds for claude alone, by its own prices"""
    agent_dollars_per_million_out: float = Field(0, alias="FC_AGENT_DOLLARS_PER_MILLION_OUT", ge=0)
    """price of a million answer tokens of it"""
    agent_image: str = Field("", alias="FC_AGENT_IMAGE")
    """image with Python 3, bash and tar in which agents run; empty: FC_OS_IMAGE with Python 3.12"""
    agent_seconds: float = Field(1800, alias="FC_AGENT_SECONDS", gt=0)
    """time limit of one run of the agent"""
    agent_tokens: int = Field(2_000_000, alias="FC_AGENT_TOKENS", ge=0)
    """tokens, in and out, of one run"""
    agent_dollars: float = Field(5, alias="FC_AGENT_DOLLARS", ge=0)
    """dollars of one run"""
    agent_turns: int = Field(40, alias="FC_AGENT_TURNS", ge=1)
    """answers of the model in one run"""
    agent_builds: int = Field(3, alias="FC_AGENT_BUILDS", ge=0)
    """builds that the agent may ask for in one run"""
    agent_attempts: int = Field(3, alias="FC_AGENT_ATTEMPTS", ge=1)
    """runs of the agent for one image"""
    agent_budget: AgentLimits = Field(
        ("item.minutes=120", "repository.dollars=50", "month.dollars=200", "month.minutes=2880"),
        alias="FC_AGENT_BUDGET",
        examples=["item.tokens=4000000,repository.dollars=50,month.minutes=600"],
        description="tokens, dollars and minutes that agents may use for an item, a repository and a month",
    )
    codecov_url: str = Field("https://api.codecov.io", alias="CODECOV_URL")
    """Codecov's API, asked for the coverage of files that a reported commit changes"""
    codecov_token: SecretStr = Field(SecretStr(""), alias="CODECOV_TOKEN")
    """token of Codecov's API; empty: public repositories alone, as anybody"""
    registry_url: str = Field("", alias="FC_REGISTRY_URL")
    """registry the images are pushed to; docker.io, or host:port; empty: not pushed"""
    dockerhub_namespace: str = Field("formulacode", alias="DOCKERHUB_NAMESPACE")
    """namespace in the registry"""
    dockerhub_username: str = Field("", alias="DOCKERHUB_USERNAME")
    """user of the registry"""
    dockerhub_token: SecretStr = Field(SecretStr(""), alias="DOCKERHUB_TOKEN")
    """token of that user"""
    registry_mode: RegistryMode = Field(RegistryMode.single, alias="FC_REGISTRY_MODE")
    """single: one registry repository for all tasks; mirror: one per repository"""
    rate_limit_seconds: float = Field(900, alias="DOCKERHUB_RATE_LIMIT_WAIT", ge=1)
    """seconds to wait where the registry's rate limit does not say how long; twelve hours in all"""
    pushed_at_once: int = Field(3, alias="FC_PUSHED_AT_ONCE", ge=1)
    """images pushed and pulled back at the same time"""
    hf_dataset: str = Field("", alias="HF_DATASET")
    """owner/name on the Hub; empty: the folder FC_DATASET_DIR"""
    dataset_dir: AbsolutePath | None = Field(None, alias="FC_DATASET_DIR")
    """folder of the dataset where HF_DATASET is empty; empty: dataset/ under FC_HOME"""
    hf_endpoint: str = Field("https://huggingface.co", alias="HF_ENDPOINT")
    """the Hub"""
    hf_token: SecretStr = Field(SecretStr(""), alias="HF_TOKEN")
    """token of the Hub"""
    hf_token_path: Path | None = Field(None, alias="HF_TOKEN_PATH")
    """file that holds that token"""
    failure_budget: FailureBudget = Field(
        ("0.1", "environments=0.3", "images=0.4", "measurements=0.3"),
        alias="FC_FAILURE_BUDGET",
        examples=["0.1,images=0.4"],
        description="share of a stage's items that may fail before its gate shuts, and of single stages, which differ: "
        "building and running what others wrote fails more often",
    )
    retry_seconds: int = Field(30, alias="FC_RETRY_SECONDS", ge=0)
    """wait before an asset is tried once more after an outside system failed; 0: it is not"""

    @property
    def github_tokens(self) -> tuple[str, ...]:
        """The tokens of `GH_TOKENS`."""
        return tuple(parts_of(self.gh_tokens.get_secret_value()))

    @property
    def statement_judge_names(self) -> tuple[str, ...]:
        """The models of `statement_judges`."""
        return tuple(name for part in self.statement_judges.split(",") if (name := part.strip()))

    @property
    def given_pool_limits(self) -> dict[str, int]:
        """The limits of the pools that somebody has named."""
        return pool_limits(self.pools) if "pools" in self.model_fields_set else {}

    def failure_budget_of(self, stage: Stage) -> float:
        """The share of the items of *stage* that may fail; 0 where nothing is said of it."""
        shares = {
            name.strip(): float(share) for name, _, share in (budget.rpartition("=") for budget in self.failure_budget)
        }
        return shares.get(stage, shares.get("", 0.0))

    @property
    def dataset_root(self) -> Path:
        """The folder of the dataset; it need not exist."""
        return self.dataset_dir or self.home / "dataset"

    @property
    def backup_root(self) -> Path:
        """The folder of the backups; it need not exist."""
        return self.backup_dir or self.home / "backups"

    @property
    def mirrors_root(self) -> Path:
        """The folder of the mirrors; it need not exist."""
        return self.mirrors_dir or self.home / "mirrors"


def read_settings(overrides: Mapping[str, Any] | None = None) -> Settings:
    """The settings as they stand now: *overrides* by field, then the environment, then `.env`, then the defaults.

    Raises ConfigurationError naming every variable that has no value that can be, and what to write.
    """
    prepare_environment()
    given = {alias_of(name): value for name, value in (overrides or {}).items()}
    try:
        return Settings(**given)
    except ValidationError as error:
        values = {str(problem["loc"][0]): problem["input"] for problem in error.errors()}
        fields = {alias: Settings.model_fields[_BY_ALIAS[alias]] for alias in values}
        raise ConfigurationError(
            "; ".join(
                f"{alias} is not what it can be" if is_secret(field) else f"{alias} is {str(values[alias])!r}"
                for alias, field in fields.items()
            ),
            remedy="; ".join(f"Write {what_it_can_be(field)} for {alias}" for alias, field in fields.items()),
        ) from None


def alias_of(name: str) -> str:
    """The environment variable of field *name*."""
    return str(Settings.model_fields[name].alias)


def default_pool_limits() -> dict[str, int]:
    """The limit of every pool where nobody has said another."""
    return pool_limits(Settings.model_fields["pools"].default)


_BY_ALIAS = {alias_of(name): name for name in Settings.model_fields}


def make_home() -> Path:
    """`FC_HOME`, made where it is missing; raises ConfigurationError when it cannot be."""
    folder = read_settings().home
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {folder}", why=str(error), remedy="Free disk space, fix its permissions, or set FC_HOME"
        ) from error
    return folder
