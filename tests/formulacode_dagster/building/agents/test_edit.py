import os
import subprocess
from pathlib import Path

import pytest

from formulacode_dagster.building.agents.edit import PreBuildCommand, SpecEdit
from formulacode_dagster.models.recipe import Command, InstallMode


def _run(commands: tuple[Command, ...], tree: Path, scratch: Path) -> list[int]:
    environment = {**os.environ, "FC_SCRATCH": str(scratch)}
    codes = []
    for command in commands:
        done = subprocess.run(command.argv, cwd=tree / command.folder, env=environment, capture_output=True)
        codes.append(done.returncode)
    return codes


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "timed.py").write_text("import time\n")
    (folder / "gone.py").write_text("")
    subprocess.run(["git", "init", "--quiet", "."], cwd=folder, check=True)
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    # what a rule's patch has removed before is no change of the agent's
    (folder / "gone.py").unlink()
    (tmp_path / "scratch" / "wheels").mkdir(parents=True)
    return folder


def _edit(*argvs: tuple[str, ...]) -> SpecEdit:
    return SpecEdit(reason="why", pre_build=tuple(PreBuildCommand(argv=argv) for argv in argvs))


def test_commands_may_add_files_and_touch_those_of_the_repository(tree: Path) -> None:
    fix = _edit(("cp", "timed.py", "made.py"), ("touch", "timed.py")).as_fix("claude")
    assert _run(fix.commands, tree, tree.parent / "scratch") == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "argv", [("cp", "/dev/null", "timed.py"), ("rm", "timed.py"), ("ln", "--force", "-s", "/dev/null", "timed.py")]
)
def test_commands_that_change_a_file_of_the_repository_end_the_build(tree: Path, argv: tuple[str, ...]) -> None:
    fix = _edit(argv).as_fix("claude")
    assert _run(fix.commands, tree, tree.parent / "scratch") == [0, 0, 1]


def test_a_fix_says_who_made_it_and_asks_for_all_of_the_edit() -> None:
    edit = SpecEdit(
        reason="fatal error: yaml.h",
        system_packages=("libyaml-dev",),
        constraints=("cython<3",),
        install_mode=InstallMode.SETUP_PY,
        python="3.9",
    )
    fix = edit.as_fix("codex")
    assert (fix.rule, fix.evidence) == ("agent:codex", "fatal error: yaml.h")
    assert (fix.apt_packages, fix.constraints, fix.python) == (("libyaml-dev",), ("cython<3",), "3.9")
    assert fix.install_mode is InstallMode.SETUP_PY
    assert fix.commands == ()


def test_a_reason_alone_is_no_edit() -> None:
    assert SpecEdit(reason="I do not know").is_empty
    assert not SpecEdit(submodules=True).is_empty


def test_the_seals_of_two_edits_are_told_apart() -> None:
    first, second = _edit(("make", "version")).as_fix("claude"), _edit(("make", "config")).as_fix("claude")
    assert not set(first.commands) & set(second.commands)
