from __future__ import annotations

import io
import tarfile
from collections.abc import Callable

import pytest

from formulacode_dagster.building.agents.edit import PreBuildCommand, SpecEdit
from formulacode_dagster.building.agents.gates import EditRefused, read_edit
from formulacode_dagster.building.agents.protocol import EditGate, NearbyRecipe, PastAttempt
from formulacode_dagster.building.agents.workspace import (
    WorkspacePaths,
    archive_of,
    edit_text,
    prompt_of,
    read_workspace,
)
from formulacode_dagster.models.recipe import Fix, InstallMode
from tests.support.confined_agents import make_task

FULL = SpecEdit(
    reason='said "no" to Ä\\n',
    system_packages=("libyaml-dev", "g++"),
    constraints=("cython<3",),
    environment={"CFLAGS": "-O2 -DX=1", "NPY_NUM_BUILD_JOBS": "1"},
    build_arguments=("setup-args=-Dblas=openblas",),
    pre_build=(PreBuildCommand(argv=("make", "version"), folder="lib"),),
    submodules=True,
    install_mode=InstallMode.SETUP_PY,
)


@pytest.mark.parametrize("edit", [SpecEdit(), FULL])
def test_an_edit_is_read_as_it_was_written(edit: SpecEdit) -> None:
    assert read_edit(edit_text(edit).encode()) == edit


def _packed(*entries: tuple[str, bytes, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, kind, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.size, entry.linkname = kind, len(content), "/etc/passwd"
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


ROOT = ("./", tarfile.DIRTYPE, b"")
EDIT = ("./edit.toml", tarfile.REGTYPE, b"submodules = true\n")


def test_a_workspace_holds_the_edit_alone() -> None:
    assert read_workspace(_packed(ROOT, EDIT)) == b"submodules = true\n"


@pytest.mark.parametrize(
    ("packed", "what"),
    [
        (_packed(ROOT), "lacks edit.toml"),
        (_packed(ROOT, ("./edit.toml", tarfile.SYMTYPE, b"")), "link or device 'edit.toml'"),
        (_packed(ROOT, ("./edit.toml", tarfile.LNKTYPE, b"")), "link or device 'edit.toml'"),
        (_packed(ROOT, EDIT, ("./pipe", tarfile.FIFOTYPE, b"")), "link or device 'pipe'"),
        (_packed(ROOT, EDIT, ("./benchmarks", tarfile.DIRTYPE, b"")), "folder 'benchmarks'"),
        (_packed(ROOT, EDIT, ("./sitecustomize.py", tarfile.REGTYPE, b"")), "file 'sitecustomize.py'"),
        (_packed(ROOT, EDIT, ("../edit.toml", tarfile.REGTYPE, b"")), "file '../edit.toml'"),
        (b"no tar, " * 500, "cannot be read"),
        (b"x" * 1_000_000, "more than"),
    ],
)
def test_a_workspace_with_anything_else_is_refused(packed: bytes, what: str) -> None:
    with pytest.raises(EditRefused, match=what) as refused:
        read_workspace(packed)
    assert refused.value.gate is EditGate.FILES


@pytest.fixture
def laid() -> Callable[..., dict[str, str]]:
    def lay(**fields: object) -> dict[str, str]:
        packed = archive_of(make_task(**fields), {".config": "x"}, places=WorkspacePaths(), user_home="/home/agent")
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            return {entry.name: archive.extractfile(entry).read().decode() for entry in archive}  # type: ignore[union-attr]

    return lay


def test_an_agent_is_given_what_was_tried(laid: Callable[..., dict[str, str]]) -> None:
    fix = Fix(rule="missing_header", evidence="yaml.h", apt_packages=("libyaml-dev",))
    attempts = tuple(
        PastAttempt(attempt=number, stage="task", detail="no", fixes=(fix,), log=f"{'x' * 70_000}the end")
        for number in range(1, 9)
    )
    files = laid(
        attempts=attempts,
        nearby=(NearbyRecipe(what="a/b#2", fixes=(fix,)),),
        declared={"setup.py": "setup()", "docs/setup.py": "other()"},
    )
    assert [path for path in files if "attempts" in path] == [f"task/attempts/00{number}.log" for number in range(3, 9)]
    assert files["task/attempts/008.log"].endswith("the end\n")
    assert len(files["task/attempts/008.log"]) < 62_000
    assert '"libyaml-dev"' in files["task/nearby.json"]
    assert {"setup()", "other()"} <= {text.rpartition("\n")[2] for path, text in files.items() if "declared" in path}
    assert files["home/agent/.config"] == "x"


def test_nobody_else_names_a_file(laid: Callable[..., dict[str, str]]) -> None:
    files = laid(declared={"../../home/agent/.bashrc": "", "/etc/passwd": "", "a/../..": ""})
    assert not [
        path for path in files if ".." in path.split("/") or path.startswith(("/", "etc", "home/agent/.bashrc"))
    ]


def test_builds_are_spoken_of_where_there_are_any() -> None:
    assert "bridge.py" not in prompt_of(WorkspacePaths(), builds=0)
    assert "3 times" in prompt_of(WorkspacePaths(), builds=3)


def test_an_agent_is_told_where_there_is_no_lock_to_build() -> None:
    assert "no common solution" in prompt_of(WorkspacePaths(), builds=0, is_locked=False)
    assert "no common solution" not in prompt_of(WorkspacePaths(), builds=0)
