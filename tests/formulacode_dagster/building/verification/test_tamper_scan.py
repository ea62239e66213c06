from __future__ import annotations

import base64
import hashlib

import pytest

from formulacode_dagster.building.engines.files import Area
from formulacode_dagster.building.verification.facts import FileFact, ImageFacts
from formulacode_dagster.building.verification.tamper_scan import find_planted, from_index

SITE = "lib/python3.11/site-packages"
SHARED = f"{SITE}/shared/__init__.py"
VENV = "home = /usr/local/bin\nversion_info = 3.11.7\ninclude-system-site-packages = false\n"
LOCK = "alpha==1.0 \\\n    --hash=sha256:0\nbeta==2.0 \\\n    --hash=sha256:0\n"


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def image(content: bytes, **brought: bytes) -> ImageFacts:
    """An environment in which the distributions *brought* each name the shared file, which holds *content*."""
    facts = ImageFacts()
    facts.texts[(Area.ENVIRONMENT, "pyvenv.cfg")] = VENV
    for name, target in (("python", "/usr/local/bin/python3"), ("python3", "python"), ("python3.11", "python")):
        facts.files[Area.ENVIRONMENT][f"bin/{name}"] = FileFact(0, target, "", "", "")
    facts.files[Area.ENVIRONMENT][SHARED] = FileFact(0, None, digest(content), "", "")
    for number, (name, own) in enumerate(brought.items(), 1):
        info = f"{SITE}/{name}-{number}.0.dist-info"
        facts.texts[(Area.ENVIRONMENT, f"{info}/RECORD")] = f"shared/__init__.py,sha256={digest(own)},1\n"
        if name == "local":
            facts.texts[(Area.ENVIRONMENT, f"{info}/direct_url.json")] = "{}"
    return facts


def recorded(facts: ImageFacts) -> ImageFacts:
    """*facts* with the hashes of the RECORDs that the lock's distributions have now."""
    hashes = ""
    for (_, path), text in list(facts.texts.items()):
        if path.endswith("/RECORD"):
            facts.files[Area.ENVIRONMENT][path] = FileFact(0, None, digest(text.encode()), "", "")
            facts.texts[(Area.ENVIRONMENT, path)] += f"{path.removeprefix(SITE + '/')},,\n"
            facts.files[Area.ENVIRONMENT][path] = FileFact(
                0, None, digest(facts.texts[(Area.ENVIRONMENT, path)].encode()), "", ""
            )
            if (Area.ENVIRONMENT, path.replace("RECORD", "direct_url.json")) not in facts.texts:
                hashes += f"{hashlib.sha256(facts.texts[(Area.ENVIRONMENT, path)].encode()).hexdigest()}  {path}\n"
    facts.texts[(Area.TOOLS, "task/record-hashes")] = hashes
    return facts


def rewrite(facts: ImageFacts, name: str, more: str) -> None:
    """Append lines to the RECORD of *name*."""
    path = f"{SITE}/{name}.dist-info/RECORD"
    text = facts.texts.get((Area.ENVIRONMENT, path), "") + more
    facts.texts[(Area.ENVIRONMENT, path)] = text
    facts.files[Area.ENVIRONMENT][path] = FileFact(1000, None, digest(text.encode()), "", "")


def test_the_records_of_the_lock_are_those_of_their_installation() -> None:
    facts = recorded(image(b"by alpha", alpha=b"by alpha", beta=b"by alpha", local=b"by alpha"))
    assert find_planted(facts, LOCK, {}) == []
    startup = b"import os\n"
    facts.files[Area.ENVIRONMENT][f"{SITE}/evil.pth"] = FileFact(1000, None, digest(startup), "", "")
    facts.texts[(Area.ENVIRONMENT, f"{SITE}/evil.pth")] = startup.decode()
    rewrite(facts, "alpha-1.0", f"evil.pth,sha256={digest(startup)},1\n")
    assert find_planted(facts, LOCK, {}) == [f"{SITE}/alpha-1.0.dist-info/RECORD is not the file that was installed"]


def test_a_distribution_of_the_lock_becomes_no_file_of_the_build() -> None:
    facts = recorded(image(b"by alpha", alpha=b"by alpha", beta=b"by alpha"))
    facts.texts[(Area.ENVIRONMENT, f"{SITE}/beta-2.0.dist-info/direct_url.json")] = "{}"
    gone = f"{SITE}/beta-2.0.dist-info/RECORD of the lock is gone"
    assert find_planted(facts, LOCK, {}, own="alpha") == [gone]
    assert find_planted(facts, LOCK, {}, own="Beta") == [], "the package under test was in the lock by another name"


def test_a_build_installs_one_package() -> None:
    facts = recorded(image(b"by alpha", alpha=b"by alpha", beta=b"by alpha", local=b"by alpha"))
    rewrite(facts, "evil-1.0", "evil-1.0.dist-info/RECORD,,\n")
    facts.texts[(Area.ENVIRONMENT, f"{SITE}/evil-1.0.dist-info/direct_url.json")] = "{}"
    installed = "was installed by the build, next to the package"
    assert find_planted(facts, LOCK, {}, own="local") == [f"evil 1.0 {installed}"]
    assert find_planted(facts, LOCK, {}) == [f"evil 1.0 {installed}", f"local 3.0 {installed}"]


@pytest.mark.parametrize("place", ["lib/python3.10/site-packages/alpha.py", "lib/python3.9/site-packages/alpha.py"])
def test_packages_of_another_interpreter_hide_none_of_this_one(place: str) -> None:
    facts = image(b"by alpha", alpha=b"by alpha", local=b"by alpha")
    facts.files[Area.ENVIRONMENT] = {place: FileFact(0, None, "", "", ""), **facts.files[Area.ENVIRONMENT]}
    rewrite(facts, "local-2.0", f"../../../{place},,\n")
    found = find_planted(facts, LOCK, {})
    assert any("is the folder of another interpreter's packages" in finding for finding in found)


def test_an_environment_whose_packages_are_elsewhere_is_found() -> None:
    facts = image(b"by alpha")
    del facts.files[Area.ENVIRONMENT][SHARED]
    facts.files[Area.ENVIRONMENT]["lib/python3.11"] = FileFact(1000, "/tmp/python3.11", "", "", "")
    assert find_planted(facts, LOCK, {}) == [
        "lib/python3.11 belongs to no installed package",
        "the environment has no folder of packages",
    ]


def test_a_startup_file_elsewhere_is_found() -> None:
    for target in ("/tmp/evil", "evil.txt"):
        assert f"{SITE}/evil.pth is a link, to what runs at every start of Python" in found_in(
            Area.ENVIRONMENT, f"{SITE}/evil.pth", target=target
        )
    assert f"{SITE}/evil.pth contains code that runs at every start of Python" in found_in(
        Area.ENVIRONMENT, f"{SITE}/evil.pth", text="\ufeffimport os\n"
    )


@pytest.mark.parametrize("content", [b"by alpha", b"by beta"])
def test_a_file_that_two_projects_of_the_lock_bring_may_be_that_of_either(content: bytes) -> None:
    assert find_planted(image(content, alpha=b"by alpha", beta=b"by beta"), LOCK, {}) == []


def test_a_wheels_data_folder_is_not_missed_despite_its_record() -> None:
    """numpy 1.15.0 lists its script twice: the installer moves it, and keeps the second line."""
    facts = image(b"by alpha", alpha=b"by alpha")
    record = (Area.ENVIRONMENT, f"{SITE}/alpha-1.0.dist-info/RECORD")
    facts.texts[record] += f"alpha-1.0.data/scripts/run,sha256={digest(b'script')},6\n"
    assert find_planted(facts, LOCK, {}) == []
    facts.texts[record] += f"alpha.py,sha256={digest(b'module')},6\n"
    assert find_planted(facts, LOCK, {}) == [f"{SITE}/alpha.py of alpha is missing"]


def test_a_licence_next_to_the_environments_settings_is_the_wheels() -> None:
    """As alive-progress 3.1 does."""
    facts = image(b"by alpha", alpha=b"by alpha")
    facts.files[Area.ENVIRONMENT]["LICENSE"] = FileFact(0, None, digest(b"MIT"), "", "")
    assert find_planted(facts, LOCK, {}) == ["LICENSE does not belong in a virtual environment"]
    facts.texts[(Area.ENVIRONMENT, f"{SITE}/alpha-1.0.dist-info/RECORD")] += (
        f"../../../LICENSE,sha256={digest(b'MIT')},3\n"
    )
    assert find_planted(facts, LOCK, {}) == []
    facts.files[Area.ENVIRONMENT]["LICENSE"] = FileFact(0, None, digest(b"forged"), "", "")
    assert find_planted(facts, LOCK, {}) == ["LICENSE of alpha is not the file that was installed"]


def with_tests(content: bytes) -> ImageFacts:
    """An image with pytest in addition to the lock, with *content*, compiled by the build."""
    facts = image(b"by alpha", alpha=b"by alpha")
    tools = {"tests/pytest.py": content, "tests/__pycache__/pytest.cpython-311.pyc": b"", "tests/.lock": b""}
    facts.files[Area.TOOLS] |= {path: FileFact(0, None, digest(held), "", "") for path, held in tools.items()}
    facts.texts[(Area.TOOLS, "tests/pytest-9.0.dist-info/RECORD")] = f"pytest.py,sha256={digest(b'pytest')},1\n"
    return facts


def test_what_tests_need_lies_beside_the_lock_as_its_wheels_brought_it() -> None:
    assert find_planted(with_tests(b"pytest"), LOCK, {}, "pytest==9.0\n") == []
    assert find_planted(with_tests(b"forged"), LOCK, {}, "pytest==9.0\n") == [
        "tests/pytest.py of pytest is not the file that was installed"
    ]
    assert find_planted(with_tests(b"pytest"), LOCK, {}) == ["pytest 9.0 is installed, the lock holds nothing of it"]
    facts = with_tests(b"pytest")
    facts.files[Area.TOOLS]["tests/conftest.py"] = FileFact(0, None, digest(b""), "", "")
    assert find_planted(facts, LOCK, {}, "pytest==9.0\n") == ["tests/conftest.py belongs to no installed package"]


def test_files_from_the_index_are_those_of_locks_and_asv() -> None:
    """asv_runner has lines as `import contextlib`, which some pull request adds: rich#955 did."""
    facts = with_tests(b"pytest")
    facts.texts[(Area.TOOLS, "instrument/asv_runner-0.2.0.dist-info/RECORD")] = "asv_runner/_aux.py,sha256=abc,1\n"
    facts.texts[(Area.TOOLS, "instrument/planted-1.0.dist-info/RECORD")] = "planted.py,sha256=abc,1\n"
    facts.texts[(Area.TOOLS, "other/planted-1.0.dist-info/RECORD")] = "planted.py,sha256=abc,1\n"
    facts.files[Area.TOOLS]["crates/vendor/url-2.5.0/src/lib.rs"] = FileFact(0, None, "", "", "")
    local = f"{SITE}/local-1.0.dist-info"
    facts.texts[(Area.ENVIRONMENT, f"{local}/RECORD")] = "local.py,sha256=abc,1\n"
    facts.texts[(Area.ENVIRONMENT, f"{local}/direct_url.json")] = "{}"
    tools = {"tests/pytest.py", "instrument/asv_runner/_aux.py", "crates/vendor/url-2.5.0/src/lib.rs"}
    assert from_index(facts, ("asv_runner==0.2.0",)) == {
        (Area.ENVIRONMENT, SHARED),
        *((Area.TOOLS, path) for path in tools),
    }
    another = from_index(facts, ("asv_runner==0.2.1",))
    assert (Area.TOOLS, "instrument/asv_runner/_aux.py") not in another, "another version is pinned"


def test_a_file_of_neither_is_found() -> None:
    found = find_planted(image(b"forged", alpha=b"by alpha", beta=b"by beta"), LOCK, {})
    assert found == [f"{SHARED} of {name} is not the file that was installed" for name in ("alpha", "beta")]


def test_the_package_under_test_may_not_bring_another_projects_file() -> None:
    found = find_planted(image(b"forged", alpha=b"by alpha", local=b"forged"), LOCK, {})
    assert found == [f"{SHARED} of alpha is not the file that was installed"]


def test_what_an_installer_moved_is_not_missing() -> None:
    facts = image(b"by alpha", alpha=b"by alpha")
    facts.texts[Area.ENVIRONMENT, f"{SITE}/beta-2.0.dist-info/RECORD"] = (
        "beta-2.0.data/scripts/f2py,sha256=abc,1\nbeta/__init__.py,sha256=abc,1\n"
    )
    assert find_planted(facts, LOCK, {}) == [f"{SITE}/beta/__init__.py of beta is missing"]


def found_in(area: Area, path: str, *, uid: int = 0, target: str | None = None, text: str | None = None) -> list[str]:
    """Findings in an honest image with one additional file."""
    facts = image(b"by alpha", alpha=b"by alpha")
    facts.files[Area.SYSTEM]["usr/bin/grep"] = FileFact(0, None, "", "", "")
    facts.files[area][path] = FileFact(uid, target, "other", "", "")
    if text is not None:
        facts.texts[area, path] = text
    return find_planted(facts, LOCK, {"PATH": "/opt/venv/bin"})


@pytest.mark.parametrize(
    ("area", "path", "finding"),
    [
        (Area.SYSTEM, "usr/lib/python3.11/site-packages/sitecustomize.py", "runs at every start of Python"),
        (Area.SYSTEM, "usr/local/lib/python3.11/usercustomize.py", "runs at every start of Python"),
        (Area.SYSTEM, "usr/local/bin/grep", "replaces a tool of the system"),
        (Area.SYSTEM, "usr/local/sbin/perf", "replaces a tool of the system"),
        (
            Area.SYSTEM,
            "home/formulacode/.local/lib/python3.11/site-packages/a.py",
            "changes the behaviour of the user's programs",
        ),
        (Area.SYSTEM, "home/formulacode/.gitconfig", "changes the behaviour of the user's programs"),
        (Area.SYSTEM, "logs/verifier/reward.txt", "looks like a result"),
        (Area.SYSTEM, "tmp/asv_results.json", "looks like a result"),
        (Area.SYSTEM, "workspace/.asv/results/machine.json", "looks like a result"),
        (Area.SYSTEM, "workspace/benchmarks.json", "looks like a result"),
        (Area.TOOLS, "harness/fc_harness.pyz", "is in the harness's folder"),
        (Area.REPOSITORY, ".git/hooks/post-checkout", "changes the behaviour of git"),
        (Area.REPOSITORY, ".git/info/attributes", "changes the behaviour of git"),
        (Area.REPOSITORY, ".git/commondir", "changes the behaviour of git"),
        (Area.REPOSITORY, ".git/config.worktree", "changes the behaviour of git"),
        (Area.REPOSITORY, ".git/refs/replace/0123", "changes the behaviour of git"),
        (Area.SYSTEM, "home/formulacode/.bash_aliases", "changes the behaviour of the user's programs"),
        (Area.SYSTEM, "home/formulacode/.tmux.conf", "changes the behaviour of the user's programs"),
        (Area.SYSTEM, "home/formulacode/.cargo/config.toml", "changes the behaviour of the user's programs"),
        (Area.SYSTEM, "workspace/conftest.py", "may change how the checkout is built and tested"),
        (Area.SYSTEM, "workspace/pytest.ini", "may change how the checkout is built and tested"),
        (Area.SYSTEM, "tmp/.cargo/config.toml", "may change how the checkout is built and tested"),
        (Area.ENVIRONMENT, "sitecustomize.py", "does not belong in a virtual environment"),
        (Area.ENVIRONMENT, "bin/tmux", "belongs to no installed package"),
        (Area.ENVIRONMENT, "bin/pyvenv.cfg", "belongs to no installed package"),
    ],
)
def test_one_file_more_is_found(area: Area, path: str, finding: str) -> None:
    assert len(found := found_in(area, path)) == 1
    assert found[0].startswith(path)
    assert finding in found[0]


@pytest.mark.parametrize(
    ("area", "path"),
    [
        (Area.SYSTEM, "usr/bin/tmux"),
        (Area.SYSTEM, "etc/ld.so.cache"),
        (Area.SYSTEM, "opt/build/bin/python"),
        (Area.TOOLS, "instrument/asv_runner/run.py"),
    ],
)
def test_a_file_of_the_system_that_the_build_could_write_is_found(area: Area, path: str) -> None:
    assert found_in(area, path) == []
    assert "is not root's" in found_in(area, path, uid=1000)[0]


def test_a_preload_is_found_in_the_files_and_in_the_variables() -> None:
    found = found_in(Area.SYSTEM, "etc/ld.so.preload", text="/opt/fast.so\n")
    assert found == ["etc/ld.so.preload puts code into every process"]
    for name in ("LD_PRELOAD", "PYTHONSTARTUP", "PYTHONPATH", "BASH_ENV", "GIT_CONFIG_GLOBAL"):
        found = find_planted(image(b"by alpha", alpha=b"by alpha"), LOCK, {name: "x"})
        assert found == [f"the variable {name} changes the behaviour of every program"]


def test_a_setting_of_the_repository_that_runs_a_program_is_found() -> None:
    honest = '[core]\n\trepositoryformatversion = 1\n\tbare = false\n[remote "formulacode"]\n\tpromisor = true\n'
    assert found_in(Area.REPOSITORY, ".git/config", text=honest) == []
    found = found_in(Area.REPOSITORY, ".git/config", text=honest + "[core]\n\tfsmonitor = /tmp/x\n")
    assert found == ["the setting core.fsmonitor of the repository changes the behaviour of git"]
    assert len(found_in(Area.REPOSITORY, ".git/config", text=f"{honest}[core] fsmonitor = /tmp/x\n")) == 1
    assert found_in(Area.REPOSITORY, ".git/config", target="/tmp/x") == [".git/config changes the behaviour of git"]


@pytest.mark.parametrize(
    "path",
    ["HEAD", "ORIG_HEAD", "index", "packed-refs", "shallow", "logs/HEAD", "refs/tags/v1.0", "objects/info/packs"],
)
def test_files_of_a_checkout_with_its_history_are_honest(path: str) -> None:
    assert found_in(Area.REPOSITORY, f".git/{path}", text=f"{'c' * 40} refs/tags/v1.0\n") == []


def test_replaced_objects_are_found_among_packed_names() -> None:
    text = f"# pack-refs with: peeled\n{'c' * 40} refs/replace/{'d' * 40}\n"
    assert found_in(Area.REPOSITORY, ".git/packed-refs", text=text) == [".git/packed-refs replaces objects"]


@pytest.mark.parametrize(
    "target",
    [
        "/opt/venv/share/python3",
        "/home/formulacode/python3",
        "/tmp/bin/python3",
        "/usr/local/../../tmp/python3",
        "//tmp/python3",
        "/proc/self/cwd/python3",
        "/usr/local/bin/perl",
        "../share/python3",
        "evil",
        "",
    ],
)
def test_an_interpreter_that_the_build_could_make_is_found(target: str) -> None:
    """It would run the command server, and so every answer of the image."""
    found = found_in(Area.ENVIRONMENT, "bin/python3", target=target)
    assert "bin/python3 is not a link to the interpreter" in found
    assert found_in(Area.ENVIRONMENT, "bin/python3", target="/usr/local/bin/python3.11") == []


def test_an_interpreter_is_found_in_a_folder_with_images() -> None:
    facts = image(b"by alpha", alpha=b"by alpha")
    assert find_planted(facts, LOCK, {}, folder="/srv/images") == []
    assert find_planted(facts, LOCK, {}, folder="/usr/local") == [
        "bin/python is not a link to the interpreter",
        "pyvenv.cfg names another interpreter",
    ]


@pytest.mark.parametrize(
    ("settings", "finding"),
    [
        (VENV.replace("/usr/local/bin", "/tmp/bin"), "pyvenv.cfg names another interpreter"),
        (f"HOME=/tmp/bin\n{VENV}", "pyvenv.cfg names another interpreter"),
        (VENV.partition("\n")[2], "pyvenv.cfg names another interpreter"),
        (f"{VENV}include-system-site-packages = true\n", "pyvenv.cfg lets packages from outside the lock in"),
    ],
)
def test_the_environments_settings_name_its_interpreter_and_nothing_more(settings: str, finding: str) -> None:
    """Python takes the first `home`, whose library it runs, and the last word on packages of the system."""
    assert found_in(Area.ENVIRONMENT, "pyvenv.cfg", text=settings) == [finding]


def test_a_package_may_not_bring_settings_of_the_interpreter() -> None:
    facts = image(b"by alpha", alpha=b"by alpha", local=b"by alpha")
    facts.files[Area.ENVIRONMENT]["bin/pyvenv.cfg"] = FileFact(1000, None, digest(b"home"), "", "")
    record = (Area.ENVIRONMENT, f"{SITE}/local-2.0.dist-info/RECORD")
    facts.texts[record] += f"../../../bin/pyvenv.cfg,sha256={digest(b'home')},1\n"
    assert find_planted(facts, LOCK, {}) == ["bin/pyvenv.cfg changes the behaviour of the interpreter"]


def test_what_a_build_leaves_in_a_folder_for_anything_is_no_result() -> None:
    for path in ("tmp/pip-build-env/setup.py", "home/formulacode/.cache/x", "home/formulacode/.keras/keras.json"):
        assert found_in(Area.SYSTEM, path, uid=1000) == []
