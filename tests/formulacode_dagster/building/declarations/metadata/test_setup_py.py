import textwrap
import tracemalloc

import pytest

from formulacode_dagster.building.declarations.metadata import static_limits, static_values
from formulacode_dagster.building.declarations.metadata.setup_py import read_setup_py
from tests.support.clock import at_most_cpu


def read(tree_of, script, **files):
    texts = {name.replace("__", "/").replace("_txt", ".txt"): text for name, text in files.items()}
    return read_setup_py(tree_of({"setup.py": textwrap.dedent(script), **texts}), ".")


def requirements(said):
    return [item.text for item in said.dependencies or ()]


def test_literals_and_module_level_names_are_read(tree_of):
    said = read(
        tree_of,
        """
        from setuptools import setup, find_packages
        NUMPY = "1.20"
        REQUIRED = ["numpy>=%s" % NUMPY, f"scipy>={NUMPY}"] + ["colorama; platform_system == 'Windows'"]
        EXTRAS = {"test": ["pytest"]}
        EXTRAS["all"] = sum(EXTRAS.values(), [])
        setup(name="fast", packages=find_packages(), install_requires=REQUIRED, extras_require=EXTRAS,
              python_requires=">=3.8", classifiers=["Programming Language :: Python :: 3.8"])
        """,
    )
    assert requirements(said) == ["numpy>=1.20", "scipy>=1.20", "colorama; platform_system == 'Windows'"]
    assert said.requires_python.value == ">=3.8"
    assert said.classifiers.value == ("3.8",)
    assert [item.text for item in said.extras["test"]] == ["pytest"]
    assert said.unread == ()


@pytest.mark.parametrize(
    "script",
    [
        "setup(install_requires=open('requirements.txt').read().splitlines())",
        "with open('requirements.txt') as f:\n    reqs = f.read().splitlines()\nsetup(install_requires=reqs)",
        "with open('requirements.txt') as f:\n    reqs = [l.strip() for l in f if l.strip()]\n"
        "setup(install_requires=reqs)",
        "import os\nhere = os.path.abspath(os.path.dirname(__file__))\n"
        "def read(*names):\n    with open(os.path.join(here, *names)) as f:\n        return f.read()\n"
        "setup(install_requires=read('requirements.txt').split())",
        "from pathlib import Path\nroot = Path(__file__).parent\n"
        "setup(install_requires=(root / 'requirements.txt').read_text().splitlines())",
        "setup(install_requires=[str(r.req) for r in parse_requirements('requirements.txt', session=magic())])",
        "def setup_package():\n    metadata = dict(name='x')\n"
        "    metadata['install_requires'] = open('requirements.txt').readlines()\n    setup(**metadata)\n"
        "if __name__ == '__main__':\n    setup_package()",
        "import os\nif os.environ.get('READTHEDOCS', False) == 'True':\n    r = []\n"
        "else:\n    r = open('requirements.txt').read().split()\nsetup(install_requires=r)",
        "import sys\nif sys.version_info[:2] < (3, 5):\n    raise RuntimeError\n"
        "if sys.version_info[0] >= 3:\n    r = ['numpy', 'attrs']\nsetup(install_requires=r)",
    ],
)
def test_the_usual_ways_to_read_requirements_are_followed(tree_of, script):
    said = read(tree_of, script, requirements_txt="numpy\nattrs\n")
    assert requirements(said) == ["numpy", "attrs"]


def test_a_requirements_file_the_script_does_not_read_is_no_declaration(tree_of):
    said = read(tree_of, "setup(name='x', install_requires=['numpy'])", requirements_txt="sphinx\n")
    assert requirements(said) == ["numpy"]


def test_what_only_running_the_script_tells_is_recorded(tree_of):
    said = read(tree_of, "import magic\nsetup(install_requires=magic.requirements())")
    assert said.dependencies is None
    assert said.unread[0].source == "setup.py:install_requires"


def test_one_unreadable_argument_in_a_call_of_dict_does_not_take_the_rest_with_it(tree_of):
    script = """
    import magic
    metadata = dict(name="x", version=magic.version(), install_requires=["numpy"], **magic.more())
    metadata["description"] = "version %s" % metadata.get("version")
    setup(**metadata)
    """
    said = read(tree_of, script)
    assert said.name.value == "x"
    assert requirements(said) == ["numpy"]
    assert said.unread == ()


@pytest.mark.parametrize(
    ("arguments", "unread"),
    [
        ("**magic.metadata()", ["setup.py:install_requires"]),
        ("install_requires=['numpy'], **magic.metadata()", []),
        ("**magic.metadata(), install_requires=['numpy']", []),
        ("requires=['numpy'], **magic.metadata()", ["setup.py:install_requires"]),
        ("install_requires=['numpy'], extras_require=magic.extras()", ["setup.py"]),
    ],
)
def test_unreadable_metadata_is_recorded(tree_of, arguments, unread):
    said = read(tree_of, f"import magic\nsetup(name='x', {arguments})")
    assert [item.source for item in said.unread] == unread
    assert requirements(said) == (["numpy"] if "numpy" in arguments else [])


def test_additions_under_a_condition_are_recorded_and_the_rest_is_kept(tree_of):
    said = read(
        tree_of,
        """
        import sys
        r = ["numpy"]
        if sys.version_info < (3, 8):
            r.append("importlib-metadata")
        setup(install_requires=r)
        """,
    )
    assert requirements(said) == ["numpy"]
    assert "condition on line 5" in said.unread[0].reason


def test_nothing_of_the_script_is_executed(tree_of, tmp_path):
    target = tmp_path / "written"
    script = f"""
    import pathlib
    pathlib.Path({str(target)!r}).write_text("x")
    open({str(target)!r}, "w").write("x")
    setup(install_requires=[__import__("os").getcwd(), ().__class__.__name__])
    """
    said = read(tree_of, script)
    assert said.dependencies is None
    assert not target.exists()


def test_files_outside_the_repository_are_not_read(tree_of):
    said = read(tree_of, "setup(install_requires=open('/etc/hostname').read().split())")
    assert said.dependencies is None


@pytest.mark.parametrize(
    "script",
    [
        "x = 'a' * 10**9\nsetup(install_requires=[x])",
        "x = '%1000000000d' % 1\nsetup(install_requires=[x])",
        "x = '{:1000000000}'.format('a')\nsetup(install_requires=[x])",
        "x = 'aaaaaaaaaaaaaaaa'\n" + "x = x.replace('a', x)\n" * 30 + "setup(install_requires=[x])",
        "x = ['a']\n" + "x = x + x\n" * 60 + "setup(install_requires=x)",
        "def f(n):\n    return f(n)\nsetup(install_requires=f(1))",
        "for i in 'aaaaaaaaaa':\n"
        + "".join(f"{' ' * 4 * d}for i in 'aaaaaaaaaa':\n" for d in range(1, 9))
        + " " * 36
        + "x = 1",
    ],
)
def test_hostile_scripts_end_quickly(tree_of, script):
    with at_most_cpu(3):
        read(tree_of, script)


@pytest.fixture
def limit(monkeypatch):
    """A limit of all values that is reached soon."""
    for module in (static_limits, static_values):
        monkeypatch.setattr(module, "MOST_WEIGHT", 1_000_000)


@pytest.mark.parametrize(
    "use",
    [
        "x = '%s' % a",
        "x = f'{a}'",
        "x = '{}'.format(a)",
        "x = a == b",
        "x = {c: 1}",
        "a.append(a)\nx = '%s' % a",
    ],
)
@pytest.mark.usefixtures("limit")
def test_a_value_that_holds_another_twice_is_weighed_no_further_than_the_limit(tree_of, use):
    """Without the limit, each takes 2 ** 40 steps."""
    doubled = "a, b, c = [], [], ()\n" + "a = [a, a]\nb = [b, b]\nc = (c, c)\n" * 40
    said = read(tree_of, f"{doubled}{use}\nsetup(name=x)")
    assert said.name is None


@pytest.mark.parametrize(
    "grown",
    [
        pytest.param("b{0} = a + []\n", id="plus"),
        pytest.param("b{0} = []\nb{0}.extend(a)\n", id="extend"),
        pytest.param("b{0} = [*a, *a, *a, *a, *a, *a, *a, *a]\n", id="star"),
        pytest.param("b{0} = f'{{t}}{{t}}{{t}}{{t}}{{t}}{{t}}{{t}}{{t}}'\n", id="format"),
        pytest.param("b{0} = open('big.txt')\n", id="open"),
    ],
)
@pytest.mark.usefixtures("limit")
def test_all_values_of_a_script_together_are_limited(tree_of, grown):
    start = "a = ['x']\n" + "a = a + a\n" * 12 + "t = 'x'\n" + "t = t + t\n" * 15
    script = start + "".join(grown.format(number) for number in range(1000))
    tree = tree_of({"setup.py": f"{script}setup(name='x')", "big.txt": "x" * 100_000})
    tracemalloc.start()
    try:
        read_setup_py(tree, ".")
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_condition_on_the_system_and_a_setup_of_ones_own_are_understood(tree_of):
    text = (
        "from platform import system\nfrom build_support import fast_setup\nextra = []\n"
        "if system() != 'Windows':\n    extra = ['jax']\n"
        "fast_setup('fast', install_requires=['numpy', *extra])\n"
    )
    said = read_setup_py(tree_of({"setup.py": text}), ".")
    assert [item.text for item in said.dependencies] == ["numpy", "jax"]
