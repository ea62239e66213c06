"""Every forgery of the table is tried, and stopped by the gate that the table names."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable

import pytest

from formulacode_dagster.building.agents.confined import judge_workspace
from formulacode_dagster.building.agents.edit import PreBuildCommand, SpecEdit
from formulacode_dagster.building.agents.gates import EditRefused, require_honest
from formulacode_dagster.building.agents.protocol import AgentBudget, AgentOutcome, EditGate, PastAttempt
from formulacode_dagster.building.agents.workspace import EDIT
from formulacode_dagster.building.engines.failures import BuildFailure
from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.specs.fixes import with_fixes
from tests.support.confined_agents import MakeAgent, make_task
from tests.support.documents import ROOT
from tests.support.forgeries import FORGERIES, INJECTED_LOG, INJECTED_README, KEY, Forgery, table
from tests.support.images import Sample, build_sample, make_spec


def _named(*forgeries: Forgery) -> object:
    return pytest.mark.parametrize("forgery", forgeries, ids=[forgery.what for forgery in forgeries])


def _drawn(forgeries: Iterable[Forgery]) -> object:
    """Of those that one gate stops, each a container or a build, a run takes one."""
    return pytest.mark.parametrize(
        "forgery",
        [
            pytest.param(
                forgery,
                id=forgery.what,
                marks=pytest.mark.variant(f"{forgery.tried_by}, stopped by {forgery.gate}", most=1),
            )
            for forgery in forgeries
        ],
    )


def test_the_page_shows_this_table() -> None:
    assert table() in (ROOT / "docs" / "agents.md").read_text()


def test_every_gate_is_tried() -> None:
    assert {*EditGate} <= {forgery.gate for forgery in FORGERIES}


@_named(*(forgery for forgery in FORGERIES if forgery.edit or forgery.files))
def test_in_the_workspace(forgery: Forgery) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, text in {EDIT: forgery.edit, **forgery.files}.items():
            entry = tarfile.TarInfo(f"./{path}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    with pytest.raises(EditRefused) as refused:
        judge_workspace(packed.getvalue(), make_task(), key=KEY)
    assert refused.value.gate == forgery.gate


@pytest.mark.docker
@_drawn(forgery for forgery in FORGERIES if forgery.script)
def test_in_the_container(make_agent: MakeAgent, forgery: Forgery) -> None:
    task = make_task(
        attempts=(PastAttempt(attempt=1, stage="task", detail="no", log=INJECTED_LOG),),
        declared={"README.md": INJECTED_README},
    )
    agent = make_agent(forgery.script)
    run = agent.run(task, budget=AgentBudget(seconds=240), build=lambda _: pytest.fail("was built"))
    assert (run.outcome, run.gate) == (AgentOutcome.REFUSED, forgery.gate), (run.detail, run.transcript)


@pytest.mark.network
@_drawn(forgery for forgery in FORGERIES if forgery.built)
def test_in_the_build(engine: ProcessEngine, pure: Sample, lock: str, forgery: Forgery) -> None:
    edit = SpecEdit(pre_build=(PreBuildCommand.model_construct(argv=("bash", "-c", forgery.built), folder="."),))
    spec = with_fixes(make_spec(pure, lock), [edit.as_fix("dishonest")])
    with pytest.raises(BuildFailure) as failure:
        build_sample(engine, spec, pure)
    assert failure.value.stage == forgery.gate
    assert forgery.finding in f"{failure.value}\n{failure.value.log}"


@pytest.mark.parametrize(
    "edit",
    [
        SpecEdit(system_packages=("libyaml-dev", "g++", "libstdc++6", "gfortran-12")),
        SpecEdit(requirements=("cython<3", "oldest-supported-numpy", "setuptools<60; python_version < '3.12'")),
        SpecEdit(environment={"CFLAGS": "-O2 -Wno-error=int-conversion", "CC": "gcc-12", "HDF5_DIR": "/usr"}),
        SpecEdit(environment={"SETUPTOOLS_SCM_PRETEND_VERSION": "1.2", "FC": "gfortran", "USE_CYTHON": "1"}),
        SpecEdit(build_arguments=("setup-args=-Dblas=openblas", "cmake.define.WITH_CUDA=OFF", "--build-option=-j2")),
        SpecEdit(
            pre_build=(
                PreBuildCommand(argv=("./configure", "--disable-docs", "--with-blas=openblas")),
                PreBuildCommand(argv=("make", "-j2", "version.h"), folder="lib"),
                PreBuildCommand(argv=("python", "tools/cythonize.py", "mypackage")),
                PreBuildCommand(argv=("python3", "-m", "Cython", "-3", "mypackage/fast.pyx")),
                PreBuildCommand(argv=("mkdir", "-p", "build/generated")),
            )
        ),
    ],
)
def test_what_honest_builds_need_passes(edit: SpecEdit) -> None:
    task = make_task()
    assert require_honest(edit, task.spec, task.own_names, key=KEY) == edit
