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
from formulacode_dagster.models.month import FIRST_MONTH
from formulacode_dagster.sources.github.transport.addresses import GitHubAddresses

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

DATASET = "dataset"
"""Folder of the dataset under FC_HOME."""


class Settings(BaseSettings):
    """Every setting: its environment variable (`alias`), type, bounds, default and meaning."""

    # an empty variable stands for the default; an invalid value may be a secret in the wrong place
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
    """folder of all local state: embedded database, mirrors, builds, reports; one for each GitHub, the demo's too"""
    first_month: str = Field(FIRST_MONTH, alias="FC_FIRST_MONTH", pattern=r"^\d{4}-(0[1-9]|1[0-2])$")
    """month with which the list of partitions begins, as YYYY-MM; earlier ones are not shown"""
    database_url: SecretStr = Field(SecretStr(""), alias="FC_DATABASE_URL")
    """Postgres of the platform; empty: the embedded one under FC_HOME"""
    database_connections: int = Field(18, alias="FC_DATABASE_CONNECTIONS", ge=4)
    """connection limit of one process; each run, helper and worker is one, and the server must allow for all"""
    database_statement_seconds: int = Field(3600, alias="FC_DATABASE_STATEMENT_SECONDS", ge=0)
    """Postgres `statement_timeout` in seconds, except for backups and migrations; 0 keeps the server default"""
    database_lock_seconds: int = Field(600, alias="FC_DATABASE_LOCK_SECONDS", ge=0)
    """Postgres `lock_timeout` in seconds; 0 keeps the server default"""
    database_idle_seconds: int = Field(600, alias="FC_DATABASE_IDLE_SECONDS", ge=0)
    """Postgres `idle_in_transaction_session_timeout` in seconds; 0 keeps the server default"""
    database_transaction_pooling: bool = Field(False, alias="FC_DATABASE_TRANSACTION_POOLING")
    """FC_DATABASE_URL is a pooler in transaction mode, such as PgBouncer: no prepared statements or session settings"""
    dagster_database_url: SecretStr = Field(SecretStr(""), alias="FC_DAGSTER_DATABASE_URL")
    """Postgres of Dagster's own storage; empty: SQLite under FC_HOME"""
    ui_hosts: Names = Field((), alias="FC_UI_HOSTS")
    """host names of the UI besides localhost and addresses; others are refused, against DNS rebinding"""
    ui_login_header: str = Field("", alias="FC_UI_LOGIN_HEADER")
    """header in which a reverse proxy names the user who logged in; empty: anyone who reaches the UI may use it"""
    ui_users: Names = Field((), alias="FC_UI_USERS")
    """users who may use the UI, as that header names them; empty: all whom the proxy lets in"""
    ui_proxies: Names = Field(("127.0.0.1", "::1"), alias="FC_UI_PROXIES")
    """addresses or networks of reverse proxies whose FC_UI_LOGIN_HEADER is believed"""
    gh_tokens: SecretStr = Field(SecretStr(""), alias="GH_TOKENS")
    """GitHub tokens, comma separated; public_repo is enough"""
    github_api_url: str = Field("https://api.github.com", alias="GITHUB_API_URL")
    """GitHub's API; of an Enterprise Server https://HOST/api/v3"""
    github_clone_url: str = Field("https://github.com", alias="GITHUB_CLONE_URL")
    """base URL for cloning repositories; file:///folder works; unset: the host of GITHUB_API_URL"""
    discovery: Names = Field(("code_search",), alias="FC_DISCOVERY")
    """sources of repositories: code_search, earlier (what the month before tracked), files with owner/repo"""
    offline_source: str = Field("", alias="FC_OFFLINE_SOURCE")
    """files, or a folder of files or of mirrors, to read instead of querying GitHub; see README"""
    minimum_stars: int = Field(500, alias="FC_MINIMUM_STARS", ge=0)
    """repositories with fewer stars are not tracked, unless they are allowed"""
    languages: Names = Field(
        ("Python", "Cython", "C", "C++", "Cuda", "Fortran", "Rust", "Jupyter Notebook"), alias="FC_LANGUAGES"
    )
    """primary languages of tracked repositories, as GitHub names them; any: every language"""
    suite_repositories: Names = Field(
        ("astropy/astropy-benchmarks", "pierreglaser/joblib_benchmarks", "jeremiedbb/scikit-learn_benchmarks"),
        alias="FC_SUITE_REPOSITORIES",
    )
    """benchmark repositories of other projects; used for a project that their name and asv.conf.json mention"""
    mirrors_dir: AbsolutePath | None = Field(None, alias="FC_MIRRORS_DIR")
    """bare mirrors; empty: mirrors/ under FC_HOME"""
    mirrors_gb: float = Field(50, alias="FC_MIRRORS_GB", ge=0)
    """size limit of the mirrors in gigabytes, beyond which the least recently used are removed; 0: no limit"""
    llm_model: str = Field("", alias="LLM_MODEL")
    """model that classifies"""
    llm_base_url: str = Field("https://api.openai.com/v1", alias="LLM_BASE_URL")
    """any OpenAI-compatible endpoint"""
    llm_api_key: SecretStr = Field(SecretStr(""), alias="LLM_API_KEY")
    """key of that endpoint"""
    classification_judge: str = Field("", alias="FC_CLASSIFICATION_JUDGE")
    """model of that endpoint that reviews accepted pull requests and unsure rejections; may be LLM_MODEL itself"""
    statement_writer: str = Field("", alias="FC_STATEMENT_WRITER")
    """model of that endpoint that rewrites issue reports as problem statements; empty: use a template"""
    statement_judges: str = Field("", alias="FC_STATEMENT_JUDGES")
    """models of it, comma separated, that check statements for leaks of the solution; a single one is asked twice"""
    workload_writer: str = Field("", alias="FC_WORKLOAD_WRITER")
    """model of it that writes a benchmark if no other code executes the change; empty: none"""
    hack_judge: str = Field("", alias="FC_HACK_JUDGE")
    """model of it that judges whether an agent's rewarded work is a hack of the benchmark; empty: none"""
    llm_max_tokens: int = Field(2048, alias="LLM_MAX_TOKENS", ge=1)
    """token limit of one answer"""
    llm_temperature: float = Field(0, alias="LLM_TEMPERATURE", ge=0, le=2)
    """sampling temperature; left out if a model does not accept it, and stored with each answer"""
    llm_seconds: int = Field(120, alias="LLM_SECONDS", ge=1)
    """time limit of one answer in seconds"""
    llm_tokens_per_month: int = Field(20_000_000, alias="LLM_TOKENS_PER_MONTH", ge=0)
    """token budget for one month of the dataset"""
    llm_dollars_per_month: float | None = Field(None, alias="LLM_DOLLARS_PER_MONTH", ge=0)
    """dollar budget for one month; needs the prices below; empty: no limit"""
    llm_dollars_per_million_in: float = Field(0, alias="LLM_DOLLARS_PER_MILLION_IN", ge=0)
    """price of a million prompt tokens"""
    llm_dollars_per_million_out: float = Field(0, alias="LLM_DOLLARS_PER_MILLION_OUT", ge=0)
    """price of a million answer tokens"""
    engine: EngineChoice = Field(
        EngineChoice.auto,
        alias="FC_ENGINE",
        description="docker; process: folders of this machine; auto: Docker, or process for the demo's samples "
        "if no daemon answers",
    )
    os_image: str = Field("python:{python}-slim-bookworm", alias="FC_OS_IMAGE")
    """OS image; {python} is replaced by 3.12 and the like"""
    build_network: str = Field("default", alias="FC_BUILD_NETWORK")
    """Docker network of builds: default, or host"""
    build_cgroup: str = Field("", alias="FC_BUILD_CGROUP")
    """cgroup or slice of Docker's machine that limits builds"""
    ca_bundle: AbsolutePath | None = Field(
        None,
        alias="FC_CA_BUNDLE",
        description="CA certificates for package indexes while building, never part of an image; "
        "empty: SSL_CERT_FILE, or else the system's",
    )
    cpus: float = Field(2, alias="FC_CPUS", gt=0)
    """CPUs of a build or measurement"""
    memory_mb: int = Field(4096, alias="FC_MEMORY_MB", ge=256)
    """memory limit of a build or measurement, in MiB"""
    disk_mb: int = Field(10240, alias="FC_DISK_MB", ge=256)
    """limit on disk writes of code in a container, in MiB; exceeding it ends the container"""
    build_seconds: int = Field(1800, alias="FC_BUILD_SECONDS", ge=1)
    """time limit of one build in seconds"""
    benchmark_seconds: int = Field(120, alias="FC_BENCHMARK_SECONDS", ge=1)
    """time limit of one benchmark process in seconds"""
    sample_seconds: float = Field(0.05, alias="FC_SAMPLE_SECONDS", gt=0)
    """seconds of timing in one sample"""
    measure_seconds: int = Field(600, alias="FC_MEASURE_SECONDS", ge=10)
    """seconds for surveys, warm-up and rounds of one task; builds and the search for workloads come on top"""
    grading_seconds: int = Field(3600, alias="FC_GRADING_SECONDS", ge=0)
    """seconds after which no further probe of a task starts, apart from the author's patch; 0: tasks are not graded"""
    grading_tries: int = Field(3, alias="FC_GRADING_TRIES", ge=1)
    """gradings of the author's patch, whose median reward counts"""
    measurement_concurrency: int = Field(1, alias="FC_MEASUREMENT_CONCURRENCY", ge=1)
    """tasks built, timed and tested in parallel; more than one disturbs each other's timings"""
    backup_dir: AbsolutePath | None = Field(None, alias="FC_BACKUP_DIR")
    """folder of the backups; empty: backups/ under FC_HOME"""
    backup_store: str = Field("", alias="FC_BACKUP_STORE")
    """s3://bucket/prefix for copies of each backup; empty: none"""
    backup_endpoint: str = Field("", alias="FC_BACKUP_ENDPOINT")
    """address of that store; empty: Amazon's"""
    backup_recipient: str = Field("", alias="FC_BACKUP_RECIPIENT")
    """public key of age (age1…) that backups are encrypted for; empty: not encrypted"""
    backup_key: SecretStr = Field(SecretStr(""), alias="FC_BACKUP_KEY")
    """long random text: backups get a MAC by it, and a restore refuses others; empty: no MAC"""
    json_log: AbsolutePath | None = Field(None, alias="FC_JSON_LOG")
    """file to which runs append their logs, one JSON object per line with run, month and item; empty: none"""
    otlp_endpoint: str = Field("", alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    """OpenTelemetry collector for spans of stages and items, by OTLP over HTTP; empty: none"""
    otlp_headers: SecretStr = Field(SecretStr(""), alias="OTEL_EXPORTER_OTLP_HEADERS")
    """headers for that collector, name=value with commas between them"""
    alert_webhook: SecretStr = Field(SecretStr(""), alias="FC_ALERT_WEBHOOK")
    """URL that receives a POST of JSON about failed runs, failed checks and late months; empty: none"""
    alert_slack: SecretStr = Field(SecretStr(""), alias="FC_ALERT_SLACK")
    """incoming webhook of Slack for the same; empty: none"""
    alert_mail_to: Names = Field((), alias="FC_ALERT_MAIL_TO")
    """mail addresses, comma separated, for the same, sent by FC_SMTP_URL; empty: none"""
    alert_mail_from: str = Field("formulacode@localhost", alias="FC_ALERT_MAIL_FROM")
    """sender of those mails"""
    smtp_url: SecretStr = Field(SecretStr(""), alias="FC_SMTP_URL")
    """mail server: smtp://user:password@host:587, with STARTTLS, or smtps://host:465; empty: smtp://localhost"""
    dagster_url: str = Field("", alias="FC_DAGSTER_URL")
    """public URL of the UI, for links in messages; empty: none"""
    backups_kept: int = Field(7, alias="FC_BACKUPS_KEPT", ge=1)
    """backups that the daily job keeps, in the folder and in the store"""
    helper_runs: int = Field(0, alias="FC_HELPER_RUNS", ge=0)
    """runs that may help one run of environments, images, measurements or published images; 0: no helpers"""
    lease_seconds: int = Field(60, alias="FC_LEASE_SECONDS", ge=3)
    """heartbeat timeout in seconds: a worker that misses it loses its items, and late results are discarded"""
    pools: PoolLimits = Field(
        ("github=2", "llm=2", "build=1", "measure=1"),
        alias="FC_POOLS",
        examples=["build=2,measure=2"],
        description="concurrent runs that use GitHub, use the model, build, and measure; an unnamed pool "
        "keeps its limit from the UI",
    )
    images_gb: float = Field(100, alias="FC_IMAGES_GB", ge=0)
    """size limit of images in gigabytes, beyond which housekeeping removes the least recently needed; 0: no limit"""
    build_cache_gb: float = Field(20, alias="FC_BUILD_CACHE_GB", ge=0)
    """the same for our part of Docker's build cache without the layers of images"""
    attempts_days: int = Field(180, alias="FC_ATTEMPTS_DAYS", ge=0)
    """days to keep unneeded build and lock attempts and logs; 0: for ever"""
    runs_days: int = Field(180, alias="FC_RUNS_DAYS", ge=0)
    """days to keep Dagster's runs that are no longer the latest of anything; 0: for ever"""
    agent: AgentSetting = Field(
        AgentSetting.none,
        alias="FC_AGENT",
        description="coding agent for failures without a repair rule: none, claude, codex, gemini, command, "
        "or auto: the first of the three that is installed",
    )
    agent_command: str = Field("", alias="FC_AGENT_COMMAND")
    """program that FC_AGENT=command runs: it reads the task from its input and edits edit.toml"""
    agent_model: str = Field("", alias="FC_AGENT_MODEL")
    """model for the agent; empty: the agent's default"""
    agent_base_url: str = Field("", alias="FC_AGENT_BASE_URL")
    """endpoint of that model; empty: the public endpoint of the agent's vendor"""
    agent_api_key: SecretStr = Field(SecretStr(""), alias="FC_AGENT_API_KEY")
    """key of that endpoint; it is never passed to the agent itself"""
    agent_dollars_per_million_in: float = Field(0, alias="FC_AGENT_DOLLARS_PER_MILLION_IN", ge=0)
    """price of a million prompt tokens of that model; 0: FC_AGENT_DOLLARS applies only to claude, by its own prices"""
    agent_dollars_per_million_out: float = Field(0, alias="FC_AGENT_DOLLARS_PER_MILLION_OUT", ge=0)
    """price of a million answer tokens of it"""
    agent_image: str = Field("", alias="FC_AGENT_IMAGE")
    """image with Python 3, bash and tar in which agents run; empty: FC_OS_IMAGE with Python 3.12"""
    agent_seconds: float = Field(1800, alias="FC_AGENT_SECONDS", gt=0)
    """time limit of one run of the agent in seconds"""
    agent_tokens: int = Field(2_000_000, alias="FC_AGENT_TOKENS", ge=0)
    """token limit of one run, in and out"""
    agent_dollars: float = Field(5, alias="FC_AGENT_DOLLARS", ge=0)
    """dollar limit of one run"""
    agent_turns: int = Field(40, alias="FC_AGENT_TURNS", ge=1)
    """limit on the model's answers in one run"""
    agent_builds: int = Field(3, alias="FC_AGENT_BUILDS", ge=0)
    """limit on builds that the agent may request in one run"""
    agent_attempts: int = Field(3, alias="FC_AGENT_ATTEMPTS", ge=1)
    """limit on runs of the agent for one image"""
    agent_budget: AgentLimits = Field(
        ("item.minutes=120", "repository.dollars=50", "month.dollars=200", "month.minutes=2880"),
        alias="FC_AGENT_BUDGET",
        examples=["item.tokens=4000000,repository.dollars=50,month.minutes=600"],
        description="tokens, dollars and minutes that agents may use for an item, a repository and a month",
    )
    codecov_url: str = Field("https://api.codecov.io", alias="CODECOV_URL")
    """Codecov's API, for the coverage of files that a reported commit changes"""
    codecov_token: SecretStr = Field(SecretStr(""), alias="CODECOV_TOKEN")
    """token of Codecov's API; empty: anonymous, public repositories only"""
    registry_url: str = Field("", alias="FC_REGISTRY_URL")
    """registry to push images to: docker.io, or host:port; empty: images are not pushed"""
    dockerhub_namespace: str = Field("formulacode", alias="DOCKERHUB_NAMESPACE")
    """namespace in the registry"""
    dockerhub_username: str = Field("", alias="DOCKERHUB_USERNAME")
    """user of the registry"""
    dockerhub_token: SecretStr = Field(SecretStr(""), alias="DOCKERHUB_TOKEN")
    """token of that user"""
    registry_mode: RegistryMode = Field(RegistryMode.single, alias="FC_REGISTRY_MODE")
    """single: one registry repository for all tasks; mirror: one per repository"""
    registry_repository: str = Field(
        "formulacode", alias="FC_REGISTRY_REPOSITORY", pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$"
    )
    """name of that one repository"""
    registry_retry_seconds: float = Field(900, alias="FC_REGISTRY_RETRY_SECONDS", ge=1)
    """seconds to wait if the registry's rate limit gives no time; at most twelve hours in total"""
    push_concurrency: int = Field(3, alias="FC_PUSH_CONCURRENCY", ge=1)
    """images pushed and pulled back in parallel"""
    hf_dataset: str = Field("", alias="HF_DATASET")
    """owner/name on the Hub; empty: the folder FC_DATASET_DIR"""
    dataset_dir: AbsolutePath | None = Field(None, alias="FC_DATASET_DIR")
    """folder of the dataset if HF_DATASET is empty; empty: dataset/ under FC_HOME"""
    hf_endpoint: str = Field("https://huggingface.co", alias="HF_ENDPOINT")
    """the Hub"""
    hf_token: SecretStr = Field(SecretStr(""), alias="HF_TOKEN")
    """token of the Hub"""
    hf_token_path: Path | None = Field(None, alias="HF_TOKEN_PATH")
    """file with that token"""
    model_cutoffs: AbsolutePath | None = Field(None, alias="FC_MODEL_CUTOFFS")
    """CSV with model, cutoff and source: ends of models' training data, before the package's own rows; empty: these"""
    failure_budget: FailureBudget = Field(
        ("0.1", "environments=0.3", "images=0.4", "measurements=0.3"),
        alias="FC_FAILURE_BUDGET",
        examples=["0.1,images=0.4"],
        description="share of a stage's items that may fail before its gate closes, and exceptions for single stages: "
        "building and running foreign code fails more often",
    )
    retry_seconds: int = Field(30, alias="FC_RETRY_SECONDS", ge=0)
    """seconds before an asset is retried once after an outside system failed; 0: no retry"""

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
        """Share of the items of *stage* that may fail; 0 by default."""
        shares = {
            name.strip(): float(share) for name, _, share in (budget.rpartition("=") for budget in self.failure_budget)
        }
        return shares.get(stage, shares.get("", 0.0))

    @property
    def dataset_root(self) -> Path:
        """The folder of the dataset; it need not exist."""
        return self.dataset_dir or self.home / DATASET

    @property
    def backup_root(self) -> Path:
        """The folder of the backups; it need not exist."""
        return self.backup_dir or self.home / "backups"

    @property
    def clone_url(self) -> str:
        """Base URL for cloning repositories: GITHUB_CLONE_URL, or the host of the API."""
        given = "github_clone_url" in self.model_fields_set
        return self.github_clone_url if given else self.github_web

    @property
    def github_web(self) -> str:
        """Base URL of the pages of the GitHub whose API is used."""
        return GitHubAddresses.of(self.github_api_url).web

    @property
    def github(self) -> str:
        """Name of the GitHub whose API is used; empty if months are read from an offline source."""
        return "" if self.offline_source else GitHubAddresses.of(self.github_api_url).name

    @property
    def mirrors_root(self) -> Path:
        """The folder of the mirrors; it need not exist."""
        return self.mirrors_dir or self.home / "mirrors"


def read_settings(overrides: Mapping[str, Any] | None = None) -> Settings:
    """Return the current settings: *overrides* by field, then the environment, then `.env`, then the defaults.

    Raises ConfigurationError naming every variable with an invalid value, and the valid ones.
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
                f"{alias} is invalid" if is_secret(field) else f"{alias} is {str(values[alias])!r}"
                for alias, field in fields.items()
            ),
            remedy="; ".join(f"Write {what_it_can_be(field)} for {alias}" for alias, field in fields.items()),
        ) from None


def alias_of(name: str) -> str:
    """The environment variable of field *name*."""
    return str(Settings.model_fields[name].alias)


def default_pool_limits() -> dict[str, int]:
    """Default limit of every pool."""
    return pool_limits(Settings.model_fields["pools"].default)


_BY_ALIAS = {alias_of(name): name for name in Settings.model_fields}


def make_home() -> Path:
    """Return `FC_HOME`, created if it is missing; raises ConfigurationError if that fails."""
    folder = read_settings().home
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {folder}", why=str(error), remedy="Free disk space, fix its permissions, or set FC_HOME"
        ) from error
    return folder
