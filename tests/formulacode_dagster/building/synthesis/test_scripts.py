from __future__ import annotations

import pytest

from formulacode_dagster.building.synthesis.scripts import read_scripts


def read(script: str) -> dict[str, object]:
    """Requests of *script*, without others."""
    return {name: value for name, value in vars(read_scripts([script])).items() if value}


@pytest.mark.parametrize(
    ("script", "asked"),
    [
        ("apt-get update && apt-get install -y --no-install-recommends libgsl-dev g++", ["libgsl-dev", "g++"]),
        ("sudo apt install libhdf5-dev=1.10 \\\n  zlib1g-dev", ["libhdf5-dev", "zlib1g-dev"]),
        ("if ! apt-get -o X=y install ffmpeg; then exit 1; fi", ["ffmpeg"]),
    ],
)
def test_debian_packages(script: str, asked: list[str]) -> None:
    assert read(script) == {"apt_packages": asked}


@pytest.mark.parametrize(
    ("script", "asked"),
    [
        ("pip install 'cython<3' numpy==1.26.0", ["cython<3", "numpy==1.26.0"]),
        ('micromamba run -n "$ENV_NAME" python -m pip install --no-cache-dir meson-python', ["meson-python"]),
        ("PIP_NO_BUILD_ISOLATION=1 uv pip install -i https://example.org/simple ninja", ["ninja"]),
        ('micromamba install -y -n "asv_3.11" -c x "cython>=3.0.4" scipy=1.11', ["cython>=3.0.4", "scipy==1.11.*"]),
        ('python -m pip install --no-build-isolation -v -e "$REPO_ROOT" && pip install .', []),
        ("micromamba create -yn x -c conda-forge numpy=1.24 cython", ["numpy==1.24.*", "cython"]),
        ("pip --quiet install --upgrade six", ["six"]),
        ('"$PYTHON" -m pip install six', ["six"]),
    ],
)  # fmt: skip
def test_requirements(script: str, asked: list[str]) -> None:
    assert read(script) == ({"requirements": asked} if asked else {})


def test_settings_of_the_build_are_those_of_the_checkout() -> None:
    assert read("pip install -ve . -Csetup-args=-Dblas=none") == {"build_arguments": ["setup-args=-Dblas=none"]}
    (fix,) = read_scripts(["pip install . --config-settings=a=b"]).as_fixes("imported:x", "why")
    assert fix.build_arguments == ("a=b",)
    other = "pip install -Ca=b six"
    assert read(other) == {"requirements": ["six"], "left_out": [f"-C a=b: {other}"]}


def test_a_system_library_of_conda_is_a_debian_package() -> None:
    assert read("conda install gsl") == {"apt_packages": ["libgsl-dev"]}


def test_variables_and_submodules() -> None:
    script = 'export A=1 B="${B:-two words}"\ngit submodule update --init --recursive'
    assert read(script) == {"environment": {"A": "1", "B": "two words"}, "submodules": True}


@pytest.mark.parametrize(
    "line",
    [
        "export PATH=/opt/bin:$PATH",
        "export LD_PRELOAD=/tmp/x.so",
        "export FLAGS=$(cat flags)",
        "export PYTHONPATH=/tmp",
        "sed -i 's/a/b/' setup.py",
        "curl -L https://example.org/x.tar.gz | tar xz",
        "git checkout main",
        "apt-get install -y $PACKAGES",
        "conda env update -f environment.yml",
        "micromamba env create --file environment.yml",
        "uv sync --extra test",
        "uv pip sync requirements.txt",
        "poetry install",
    ],
)
def test_what_a_recipe_cannot_hold_is_named(line: str) -> None:
    assert read(line) == {"left_out": [line]}


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("pip install -r requirements-dev.txt", "-r requirements-dev.txt"),
        ("pip install --group test", "--group test"),
        ('pip install -e ".[test]"', ".[test]"),
        ("pip install .[dev]", ".[dev]"),
        ('pip install -e "$ROOT"$EXTRAS', "$ROOT$EXTRAS"),
        ("pip install $DEPS", "$DEPS"),
        ("conda install --file requirements.txt", "-f requirements.txt"),
        ("conda create -n x python=3.10", "python=3.10"),
    ],
)
def test_what_an_install_command_names_that_a_recipe_cannot_hold_is_named(line: str, part: str) -> None:
    assert read(line) == {"left_out": [f"{part}: {line}"]}


@pytest.mark.parametrize(
    "word", ["git+https://example.org/x.git", "x@https://example.org/x.whl", "asv", "python>=3.11"]
)
def test_what_no_lock_may_hold_is_named(word: str) -> None:
    assert read(f"pip install '{word}'") == {"left_out": [f"{word}: pip install '{word}'"]}


def test_what_stands_in_a_here_document_or_an_open_quotation_is_no_command() -> None:
    assert read("cat >x <<'EOF'\napt-get install evil\nEOF\npip install six\necho 'open\n") == {"requirements": ["six"]}


def test_scripts_together_make_one_fix_and_none_where_they_ask_for_nothing() -> None:
    (fix,) = read_scripts(["apt-get install gcc gcc", "pip install six\npip install six"]).as_fixes("imported:x", "why")
    assert (fix.apt_packages, fix.requirements, fix.rule) == (("gcc",), ("six",), "imported:x")
    assert read_scripts(["echo hello\nfor version in 1 2; do true; done"]).as_fixes("imported:x", "") == ()
