"""Every setting of the platform, in one table: name, default, meaning. `.env.example` is held to it by a test."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError


@dataclass(frozen=True)
class Setting:
    """One environment variable."""

    name: str
    default: str
    meaning: str
    secret: bool = False


SETTINGS: tuple[Setting, ...] = (
    Setting("FC_HOME", ".formulacode", "folder of all local state: embedded database, mirrors, builds, reports"),
    Setting("FC_DATABASE_URL", "", "Postgres of the platform; empty: the embedded one under FC_HOME", secret=True),
    Setting(
        "FC_DAGSTER_DATABASE_URL", "", "Postgres of Dagster's own storage; empty: SQLite under FC_HOME", secret=True
    ),
    Setting("GH_TOKENS", "", "GitHub tokens, comma separated; public_repo is enough", secret=True),
    Setting("GITHUB_API_URL", "https://api.github.com", "GitHub's API"),
    Setting("GITHUB_CLONE_URL", "https://github.com", "where repositories are cloned from; file:///folder works"),
    Setting(
        "FC_OFFLINE_SOURCE",
        "",
        "files, or a folder of files or of mirrors, to take in instead of asking GitHub; see README",
    ),
    Setting("FC_MINIMUM_STARS", "500", "repositories with fewer stars are not tracked, unless they are allowed"),
    Setting(
        "FC_LANGUAGES",
        "Python,Cython,C,C++,Cuda,Fortran,Rust,Jupyter Notebook",
        "primary languages, in GitHub's words, of tracked repositories; any: whichever",
    ),
    Setting("FC_MIRRORS_DIR", "", "bare mirrors; empty: mirrors/ under FC_HOME"),
    Setting("FC_MIRRORS_GB", "50", "gigabytes they may take before the least recently used are removed; 0: no limit"),
    Setting("LLM_MODEL", "", "name of the model that classifies"),
    Setting("LLM_BASE_URL", "https://api.openai.com/v1", "any OpenAI-compatible endpoint"),
    Setting("LLM_API_KEY", "", "key of that endpoint", secret=True),
    Setting("LLM_MAX_TOKENS", "2048", "most tokens of one answer"),
    Setting("LLM_SECONDS", "120", "time limit of one answer"),
    Setting("LLM_TOKENS_PER_MONTH", "20000000", "token budget of one month of the dataset; empty: none"),
    Setting("LLM_DOLLARS_PER_MONTH", "", "dollar budget of one month; needs the prices below; empty: none"),
    Setting("LLM_DOLLARS_PER_MILLION_IN", "0", "price of a million prompt tokens"),
    Setting("LLM_DOLLARS_PER_MILLION_OUT", "0", "price of a million answer tokens"),
    Setting("FC_ENGINE", "auto", "docker, process, or auto: Docker when a daemon answers"),
    Setting("FC_OS_IMAGE", "python:{python}-slim-bookworm", "OS image; {python} is replaced by 3.12 and the like"),
    Setting("FC_BUILD_NETWORK", "default", "Docker network of builds: default, or host"),
    Setting("FC_BUILD_CGROUP", "", "cgroup or slice of Docker's machine below which builds run, held to its limits"),
    Setting("FC_CA_BUNDLE", "", "CA certificates for package indexes while building; never part of an image"),
    Setting("FC_CPUS", "2", "CPUs of a build or measurement"),
    Setting("FC_MEMORY_MB", "4096", "memory of a build or measurement"),
    Setting("FC_DISK_MB", "10240", "what code may write to disk in a container before it is ended"),
    Setting("FC_BUILD_SECONDS", "1800", "time limit of one build"),
    Setting("FC_BENCHMARK_SECONDS", "120", "time limit of one benchmark process"),
    Setting("FC_ROUNDS", "7", "interleaved samples a side; 7 at least"),
    Setting("FC_SAMPLE_SECONDS", "0.1", "seconds of timing in one sample"),
    Setting("FC_MEASURE_SECONDS", "600", "time budget of one task's measurement"),
    Setting(
        "FC_IMAGES_GB",
        "100",
        "gigabytes that images may take before housekeeping removes those needed least recently; 0: no limit",
    ),
    Setting("FC_BUILD_CACHE_GB", "20", "the same of our part of Docker's build cache, of what no image lies on"),
    Setting("FC_REGISTRY_URL", "", "registry the images are pushed to; docker.io, or host:port; empty: not pushed"),
    Setting("DOCKERHUB_NAMESPACE", "formulacode", "namespace in the registry"),
    Setting("DOCKERHUB_USERNAME", "", "user of the registry"),
    Setting("DOCKERHUB_TOKEN", "", "token of that user", secret=True),
    Setting("FC_REGISTRY_MODE", "single", "single: one registry repository for all tasks; mirror: one per repository"),
    Setting("HF_DATASET", "", "owner/name on the Hub; empty: a folder dataset/ under FC_HOME"),
    Setting("HF_ENDPOINT", "https://huggingface.co", "the Hub"),
    Setting("HF_TOKEN", "", "token of the Hub", secret=True),
    Setting("HF_TOKEN_PATH", "", "file that holds that token"),
    Setting(
        "FC_RETRY_SECONDS", "30", "wait before an asset is tried once more after an outside system failed; 0: it is not"
    ),
)

_BY_NAME = {setting.name: setting for setting in SETTINGS}


def load_env_file(path: Path | None = None) -> None:
    """Put the variables of `.env` into the environment, where they are not set yet.

    Raises ConfigurationError naming the line that cannot be read.
    """
    from dotenv.parser import parse_stream

    path = path or Path(".env")
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as stream:
        for binding in parse_stream(stream):
            if binding.error:
                # what cannot be read begins with the empty lines before it
                text = binding.original.string
                empty = text[: len(text) - len(text.lstrip())].count("\n")
                raise ConfigurationError(
                    f"{path}, line {binding.original.line + empty} cannot be read",
                    remedy="Write NAME=value on each line, quotes closed; see .env.example",
                )
            if binding.key and binding.value is not None:
                os.environ.setdefault(binding.key, binding.value)


def setting(name: str) -> str:
    """The value for a resource's field: the variable's `EnvVar` where it is set, the default where it is not.

    An `EnvVar` is shown by name and read only when a run starts, so no secret is ever part of the definitions.
    """
    known = _BY_NAME[name]
    if os.environ.get(name, "") == "":
        return known.default
    from dagster import EnvVar

    return EnvVar(name)


def value_of(name: str) -> str:
    """The setting as it stands now, for what must be known before a run starts."""
    return os.environ.get(name) or _BY_NAME[name].default


def home() -> Path:
    """`FC_HOME`, absolute."""
    return Path(value_of("FC_HOME")).expanduser().absolute()


def make_home() -> Path:
    """`FC_HOME`, made where it is missing; raises ConfigurationError when it cannot be."""
    folder = home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {folder}", why=str(error), remedy="Free disk space, fix its permissions, or set FC_HOME"
        ) from error
    return folder


def whole_number(name: str, text: str, *, minimum: int = 0) -> int:
    """Read *text*, the value of setting *name*; raises ConfigurationError when it is no whole number ≥ *minimum*."""
    try:
        number = int(text)
    except ValueError:
        number = minimum - 1
    if number < minimum:
        raise ConfigurationError(f"{name} is {text!r}", remedy=f"Write a whole number of at least {minimum}")
    return number


def decimal_number(name: str, text: str) -> float:
    """Read *text*, the value of setting *name*; raises ConfigurationError when it is no number ≥ 0."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ConfigurationError(f"{name} is {text!r}", remedy="Write a number, 0 or more")
    return number
