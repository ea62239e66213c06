import pytest

from formulacode_dagster.models.paths import PathKind, kind_of


@pytest.mark.parametrize(
    "path",
    [
        "pkg/core.py",
        "src/pkg/_loop.pyx",
        "numpy/core/src/umath/loops.c.src",
        "pandas/_libs/hashtable_class_helper.pxi.in",
        "pkg/_native.c",
        "src/lib.rs",
        "pkg/kernels/sum.cu",
        "lib/fft.f90",
        "tool/main.go",
        "packaging/version.py",
        "scipy/stats/_page_trend_test.py",
        "numpy/testing/_private/utils.py",
        "pkg/contest.py",
        "pkg/latest.py",
        "documents/render.py",
    ],
)
def test_sources_are_core(path: str) -> None:
    assert kind_of(path) is PathKind.CORE


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("tests/test_core.py", PathKind.TEST),
        ("pkg/tests/helpers.py", PathKind.TEST),
        ("pkg/test_core.py", PathKind.TEST),
        ("pkg/core_test.py", PathKind.TEST),
        ("conftest.py", PathKind.TEST),
        ("benchmarks/bench_core.py", PathKind.BENCHMARK),
        ("asv_bench/benchmarks/algorithms.py", PathKind.BENCHMARK),
        ("asv.conf.json", PathKind.BENCHMARK),
        ("docs/conf.py", PathKind.DOCUMENTATION),
        ("README.md", PathKind.DOCUMENTATION),
        ("CHANGELOG", PathKind.DOCUMENTATION),
        ("doc/release/notes.rst", PathKind.DOCUMENTATION),
        (".github/workflows/ci.yml", PathKind.AUTOMATION),
        ("ci/build.sh", PathKind.AUTOMATION),
        ("setup.py", PathKind.CONFIGURATION),
        ("pyproject.toml", PathKind.CONFIGURATION),
        ("pkg/_version.py", PathKind.CONFIGURATION),
        ("uv.lock", PathKind.CONFIGURATION),
        ("requirements-dev.txt", PathKind.CONFIGURATION),
        (".pre-commit-config.yaml", PathKind.CONFIGURATION),
        ("meson.build", PathKind.CONFIGURATION),
        ("pkg/data/table.npy", PathKind.OTHER),
    ],
)
def test_everything_else_has_a_kind_of_its_own(path: str, kind: PathKind) -> None:
    assert kind_of(path) is kind
