"""Finds foreign content in an image: code that runs unasked, impostor tools, files that no wheel brought."""

from __future__ import annotations

import base64
import csv
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from formulacode_dagster.building.engines.files import CRATES_FOLDER, RECORD_HASHES, TESTS_FOLDER, Area

from .facts import LEFT_OVER, FileFact, ImageFacts, is_startup_file

_SITE = re.compile(r"^(lib/python3\.\d+/site-packages)/")
_STARTUP = ("sitecustomize", "usercustomize")
_VENV_FILES = re.compile(r"^(pyvenv\.cfg|\.lock|\.gitignore|CACHEDIR\.TAG|lib64)$")
_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_PYTHON_SETTINGS = re.compile(r"^bin/(pyvenv\.cfg|pybuilddir\.txt|.*\._pth)$")
_OF_BUILDS = (
    *("/workspace", "/opt/venv", "/opt/build", "/opt/formulacode", "/home", "/logs", "/tmp", "/var"),  # noqa: S108 - not written to
    *("/dev", "/proc", "/run", "/sys"),
)
"""Folders of a container in which a build can write, or that lead to such."""
_VENV_PROGRAMS = re.compile(r"^bin/(python(3(\.\d+)?)?|activate(\.\w+|_this\.py)?|deactivate\.bat|pydoc\.bat)$")
_COMPILED_OR_LOCK = re.compile(r"/__pycache__/[^/]+\.pyc$|/uv_cache\.json$|^tests/\.lock$")
_UNRECORDED = re.compile(r"/uv_cache\.json$")
_HOME = re.compile(
    r"home/[^/]+/(\.(local|ssh|cargo|tmux)/.*|\.config/(pip|git|uv|fish|tmux)/.*"
    r"|\.(?!(rnd|wget-hsts|python_history|node_repl_history|lesshst)$)[^/]+)",
    re.DOTALL,
)
"""Settings of programs: hidden files but for some with data, and folders like those."""
_SETTINGS_ABOVE = re.compile(r"(workspace|tmp/formulacode-build|(var/)?tmp/\.cargo)/.*", re.DOTALL)
"""Above the checkout and the tree that is built, where tests and builds look for their settings, too."""
_GIT_FILES = re.compile(
    r"\.git/(HEAD|ORIG_HEAD|FETCH_HEAD|config|description|index|packed-refs|shallow"
    r"|(objects|logs|refs/(heads|remotes|tags))/.+)",
    re.DOTALL,
)
_SECTION = re.compile(r'\[([a-z]+)(?: "([\w.-]+)")?\]', re.IGNORECASE)
_TOOLS = frozenset(
    "awk bash c++ cat cc cp env g++ gcc git grep ld ls make mv perf ps rm sed sh sleep sort tail tar "  # noqa: SIM905
    "taskset tee time timeout tmux uname xargs".split()
)
_RESULT = re.compile(r"(^|/)(\.asv|results?|reward|score|verifier|benchmarks?)([./_-]|$)|asv.*\.json$", re.IGNORECASE)
_UNASKED = re.compile(
    r"(LD_\w+|PYTHON(STARTUP|PATH|HOME|BREAKPOINT|INSPECT|USERBASE|EXECUTABLE|PLATLIBDIR)|BASH_ENV|ENV|PROMPT_COMMAND"
    r"|GIT_(EXEC_PATH|TEMPLATE_DIR|CONFIG\w*|SSH\w*|DIR|OBJECT_DIRECTORY)|PYTEST_(ADDOPTS|PLUGINS))"
)
_GIT_SETTINGS = re.compile(
    r"(core\.(repositoryformatversion|filemode|bare|logallrefupdates|symlinks|ignorecase|precomposeunicode)"
    r"|extensions\.partialclone|remote\.formulacode\.promisor)"
)
_LOCKED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?\s*==\s*([^\s;\\]+)", re.MULTILINE)


_INSTRUMENT = "instrument"
"""Folder of the tools with the harness's asv_runner, from the index like all locked packages."""


@dataclass(frozen=True)
class Distribution:
    """One installed distribution."""

    name: str
    version: str
    record: dict[str, str]
    """Hash by path below the area's root, as `sha256=…`; empty if the RECORD gives none."""
    is_local: bool
    """True if it was installed from a file of the build, not from an index."""
    folder: str = ""
    """Its `.dist-info`."""


def find_planted(
    facts: ImageFacts,
    lock: str,
    variables: Mapping[str, str],
    test_lock: str = "",
    *,
    own: str = "",
    folder: str = "",
) -> list[str]:
    """One sentence per thing that does not belong, sorted; none in an honest image.

    *variables* are those that the image sets for every process in it, *test_lock* complements the *lock*, *own* names
    the package under test. Images that are folders are in *folder*.
    """
    site = site_packages(facts)
    distributions = installed(facts, Area.ENVIRONMENT, site)
    planted = [
        *_not_locked(distributions, lock),
        *_changed_since(facts, distributions, canonicalize_name(own)),
        *_startup_code(facts, distributions, site),
        *_altered(facts, Area.ENVIRONMENT, distributions),
        *_unrecorded(facts, distributions, site),
        *_foreign_programs(facts, distributions),
        *_interpreter(facts, _OF_BUILDS if facts.files[Area.SYSTEM] else filter(None, [folder])),
        *_altered(facts, Area.TOOLS, installed(facts, Area.TOOLS, _INSTRUMENT)),
        *_of_tests(facts, test_lock),
        *_tools(facts),
        *_git(facts),
        *_system(facts),
        *(f"{path} is too long to be read" for _, path in facts.unread),
        *(
            f"the variable {name} changes the behaviour of every program"
            for name in variables
            if _UNASKED.fullmatch(name)
        ),
    ]
    return sorted(set(planted))


def site_packages(facts: ImageFacts) -> str:
    """Folder of the installed packages, below the environment."""
    return next((match[1] for path in facts.environment if (match := _SITE.match(path))), "")


def installed(facts: ImageFacts, area: Area, folder: str) -> list[Distribution]:
    """The distributions in *folder*, according to their RECORDs."""
    distributions = []
    for (where, path), text in facts.texts.items():
        inside = PurePosixPath(path)
        if where is not area or inside.name != "RECORD" or str(inside.parent.parent) != folder:
            continue
        stem = inside.parent.name.removesuffix(".dist-info")
        name, _, version = stem.partition("-")
        record = {}
        for row in _rows(text):
            # An installer moves these elsewhere; a wheel that lists one twice keeps a line of it.
            if row and not row[0].startswith(f"{stem}.data/"):
                record[_normal(f"{folder}/{row[0]}")] = row[1] if len(row) > 1 else ""
        is_local = (area, f"{inside.parent}/direct_url.json") in facts.texts
        folder_of_it = str(inside.parent)
        distributions.append(Distribution(canonicalize_name(name), version, record, is_local, folder_of_it))
    return distributions


def _rows(record: str) -> list[list[str]]:
    """The lines of a RECORD; none if it is no table, so that its files belong to no distribution."""
    try:
        return list(csv.reader(record.splitlines()))
    except csv.Error:
        return []


def from_index(facts: ImageFacts, instrument: Collection[str]) -> frozenset[tuple[Area, str]]:
    """Files that came from an index, by the word of the installer: the environment's, the tests', asv's, crates.

    For the measuring tools, these are the files of the pins of *instrument*, and of nothing next to them.
    """
    pinned = locked_versions("\n".join(instrument))
    locked = [each for each in installed(facts, Area.ENVIRONMENT, site_packages(facts)) if not each.is_local]
    measuring = installed(facts, Area.TOOLS, _INSTRUMENT)
    tools = [each for each in measuring if _version(each.version) in pinned.get(each.name, ())]
    brought = {Area.ENVIRONMENT: locked, Area.TOOLS: [*installed(facts, Area.TOOLS, TESTS_FOLDER), *tools]}
    crates = ((Area.TOOLS, path) for path in facts.files[Area.TOOLS] if path.startswith(f"{CRATES_FOLDER}/"))
    return frozenset((area, path) for area, some in brought.items() for each in some for path in each.record).union(
        crates
    )


def locked_versions(lock: str) -> dict[str, set[str]]:
    """Versions by canonical name that *lock* allows; a name may occur more than once, under markers."""
    versions: dict[str, set[str]] = {}
    for name, version in _LOCKED.findall(lock):
        versions.setdefault(canonicalize_name(name), set()).add(_version(version))
    return versions


def _version(text: str) -> str:
    try:
        return str(Version(text))
    except InvalidVersion:
        return text


def _not_locked(distributions: list[Distribution], lock: str) -> Iterator[str]:
    locked = locked_versions(lock)
    for distribution in distributions:
        if distribution.is_local:
            continue
        allowed = locked.get(distribution.name, set())
        if _version(distribution.version) not in allowed:
            says = " or ".join(sorted(allowed)) or "nothing of it"
            yield f"{distribution.name} {distribution.version} is installed, the lock holds {says}"


def _changed_since(facts: ImageFacts, distributions: list[Distribution], own: str) -> Iterator[str]:
    """Return differences from the lock's distributions as they were installed, before any code of the repository ran.

    RECORDs and `direct_url.json` themselves prove nothing: a build can write them.
    """
    local = [distribution for distribution in distributions if distribution.is_local]
    for distribution in local:
        if len(local) > 1 and distribution.name != own:
            yield f"{distribution.name} {distribution.version} was installed by the build, next to the package"
    text = facts.texts.get((Area.TOOLS, RECORD_HASHES))
    # images of earlier releases have no hashes
    if text is None:
        return
    hashes = {path: digest for digest, _, path in (line.partition("  ") for line in text.splitlines())}
    records = [f"{distribution.folder}/RECORD" for distribution in distributions if not distribution.is_local]
    for path in hashes.keys() - set(records):
        if canonicalize_name(PurePosixPath(path).parent.name.partition("-")[0]) != own:
            yield f"{path} of the lock is gone"
    for path in records:
        if hashes.get(path) != base64.urlsafe_b64decode(f"{facts.environment[path].sha256}=").hex():
            yield f"{path} is not the file that was installed"


def _of_lock(distributions: list[Distribution]) -> Iterator[tuple[str, str]]:
    """Path and hash of every file that a distribution of the lock brought."""
    for distribution in distributions:
        if not distribution.is_local:
            yield from distribution.record.items()


def _startup_code(facts: ImageFacts, distributions: list[Distribution], site: str) -> Iterator[str]:
    from_lock = dict(_of_lock(distributions))
    for area in (Area.ENVIRONMENT, Area.SYSTEM):
        for path, fact in facts.files[area].items():
            module = PurePosixPath(path)
            if module.name.startswith("__init__."):
                module = module.parent
            on_path = str(module.parent) == site if area is Area.ENVIRONMENT else "python" in path
            if on_path and module.name.partition(".")[0] in _STARTUP and not _is_debians(path, fact):
                yield f"{path} runs at every start of Python"
    # Only the environment's own: a virtual environment reads no .pth of the system's interpreter.
    for path, fact in facts.environment.items():
        if is_startup_file(Area.ENVIRONMENT, path) and fact.target is not None:
            yield f"{path} is a link, to what runs at every start of Python"
    for (area, path), text in facts.texts.items():
        if not is_startup_file(area, path):
            continue
        lines = text.removeprefix("\ufeff").splitlines()
        runs = any(line.startswith(("import ", "import\t")) for line in lines)
        if runs and from_lock.get(path) != f"sha256={facts.environment[path].sha256}":
            yield f"{path} contains code that runs at every start of Python"


def _is_debians(path: str, fact: FileFact) -> bool:
    """Debian's own interpreter comes with an empty sitecustomize."""
    return fact.uid == 0 and re.match(r"^(usr/lib|etc)/python3(\.\d+)?/sitecustomize\.py$", path) is not None


def _altered(facts: ImageFacts, area: Area, distributions: list[Distribution]) -> Iterator[str]:
    # Two projects of the lock may bring one file, as parts of a namespace; the one installed last wrote it.
    of_lock = set(_of_lock(distributions))
    for distribution in distributions:
        for path, value in distribution.record.items():
            fact = facts.files[area].get(path)
            # installers move files below `.data`; old wheels record their place in the archive
            if not value.startswith("sha256=") or (fact is None and ".data/" in path):
                continue
            if fact is None or (value != f"sha256={fact.sha256}" and (path, f"sha256={fact.sha256}") not in of_lock):
                what = "is missing" if fact is None else "is not the file that was installed"
                yield f"{path} of {distribution.name} {what}"


def _unrecorded(facts: ImageFacts, distributions: list[Distribution], site: str) -> Iterator[str]:
    recorded = {path for distribution in distributions for path in distribution.record}
    for path in facts.environment:
        if path.startswith("lib/python") and path not in recorded and not _UNRECORDED.search(path):
            yield f"{path} belongs to no installed package"
    if strangers := {match[1] for match in map(_SITE.match, facts.environment) if match} - {site}:
        yield f"{min(strangers)} is the folder of another interpreter's packages"
    if not site:
        yield "the environment has no folder of packages"


def _foreign_programs(facts: ImageFacts, distributions: list[Distribution]) -> Iterator[str]:
    recorded = {path for distribution in distributions for path in distribution.record}
    for path in facts.environment:
        if path.startswith("bin/"):
            if path not in recorded and not _VENV_PROGRAMS.match(path):
                yield f"{path} belongs to no installed package"
            elif _PYTHON_SETTINGS.match(path):
                yield f"{path} changes the behaviour of the interpreter"
            elif path in recorded and PurePosixPath(path).name in _TOOLS:
                yield f"{path} replaces a tool of the system"
        # some projects put their licence next to `pyvenv.cfg`, where no interpreter looks for code
        elif "/" not in path and path not in recorded and not _VENV_FILES.match(path):
            yield f"{path} does not belong in a virtual environment"


def _interpreter(facts: ImageFacts, of_builds: Iterable[str]) -> Iterator[str]:
    """Findings about the interpreter, which must be none that the build has put into one of the folders *of_builds*."""
    theirs = tuple(f"{folder}/" for folder in of_builds)
    folders = set()
    for path, fact in facts.environment.items():
        place, _, name = path.rpartition("/")
        if place != "bin" or not _PYTHON.fullmatch(name):
            continue
        folder, slash, program = (fact.target or "").rpartition("/")
        is_elsewhere = re.fullmatch(r"(/[^/]+)+", folder) and folder == posixpath.normpath(folder)
        if not _PYTHON.fullmatch(program) or (slash and (not is_elsewhere or f"{folder}/".startswith(theirs))):
            yield f"{path} is not a link to the interpreter"
        elif slash:
            folders.add(folder)
    pairs = (line.partition("=") for line in facts.texts.get((Area.ENVIRONMENT, "pyvenv.cfg"), "").splitlines())
    settings = [(key.strip().lower(), value.strip()) for key, _, value in pairs]
    if [value for key, value in settings if key == "home"] != sorted(folders):
        yield "pyvenv.cfg names another interpreter"
    if [value for key, value in settings if key == "include-system-site-packages"] != ["false"]:
        yield "pyvenv.cfg lets packages from outside the lock in"


def _of_tests(facts: ImageFacts, test_lock: str) -> Iterator[str]:
    """Return foreign files in the folder of test requirements; its bytecode is the build's."""
    distributions = installed(facts, Area.TOOLS, TESTS_FOLDER)
    yield from _not_locked(distributions, test_lock)
    yield from _altered(facts, Area.TOOLS, distributions)
    recorded = {path for distribution in distributions for path in distribution.record}
    for path in facts.files[Area.TOOLS]:
        if path.startswith(f"{TESTS_FOLDER}/") and path not in recorded and not _COMPILED_OR_LOCK.search(path):
            yield f"{path} belongs to no installed package"


def _tools(facts: ImageFacts) -> Iterator[str]:
    is_container = bool(facts.files[Area.SYSTEM])
    for path, fact in facts.files[Area.TOOLS].items():
        if path.startswith("harness/"):
            yield f"{path} is in the harness's folder"
        elif is_container and fact.uid != 0:
            yield f"{path} of the measuring tools is not root's"


def _git(facts: ImageFacts) -> Iterator[str]:
    for path, fact in facts.files[Area.REPOSITORY].items():
        if path.startswith(".git/") and (fact.target is not None or not _GIT_FILES.fullmatch(path)):
            yield f"{path} changes the behaviour of git"
    if " refs/replace/" in facts.texts.get((Area.REPOSITORY, ".git/packed-refs"), ""):
        yield ".git/packed-refs replaces objects"
    section = ""
    for line in map(str.strip, facts.texts.get((Area.REPOSITORY, ".git/config"), "").splitlines()):
        if match := _SECTION.fullmatch(line):
            section = ".".join(filter(None, match.groups())).lower()
        elif line and line[0] not in "#;":
            setting = f"{section}.{line.partition('=')[0].strip().lower()}"
            if not _GIT_SETTINGS.fullmatch(setting):
                yield f"the setting {setting} of the repository changes the behaviour of git"


def _system(facts: ImageFacts) -> Iterator[str]:
    for (area, path), text in facts.texts.items():
        if area is Area.SYSTEM and path == "etc/ld.so.preload" and text.strip():
            yield "etc/ld.so.preload puts code into every process"
    files = facts.files[Area.SYSTEM]
    for path, fact in files.items():
        pure = PurePosixPath(path)
        if path.startswith(LEFT_OVER):
            if _RESULT.search(path):
                yield f"{path} looks like a result before any measurement"
            elif _SETTINGS_ABOVE.fullmatch(path):
                yield f"{path} may change how the checkout is built and tested"
        elif path.startswith("home/"):
            if _HOME.fullmatch(path) and not _is_skeleton(files, pure, fact):
                yield f"{path} changes the behaviour of the user's programs"
        elif fact.uid != 0:
            yield f"{path} is not root's"
        elif str(pure.parent) in ("usr/local/bin", "usr/local/sbin") and pure.name in _TOOLS:
            yield f"{path} replaces a tool of the system"


def _is_skeleton(files: dict[str, FileFact], path: PurePosixPath, fact: FileFact) -> bool:
    original = files.get(f"etc/skel/{path.name}")
    return original is not None and original.sha256 == fact.sha256


def _normal(path: str) -> str:
    """*path* without `..`: a RECORD names scripts and headers relative to site-packages."""
    return posixpath.normpath("/" + path).lstrip("/")
