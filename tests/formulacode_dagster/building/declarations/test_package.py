import pytest

from formulacode_dagster.building.declarations.asv_config import AsvConfig
from formulacode_dagster.building.declarations.licenses import license_of
from formulacode_dagster.building.declarations.package import find_import_name, find_package_root, is_package_root
from formulacode_dagster.building.declarations.requirements import read_metadata
from formulacode_dagster.models.errors import ItemFailure

PROJECT = "[project]\nname = 'fast-thing'\n"


def config(path="asv.conf.json", **rest):
    return AsvConfig(path=path, benchmark_dir="benchmarks", **rest)


@pytest.mark.parametrize(
    ("files", "settings", "expected"),
    [
        ({"setup.py": "", "python/pyproject.toml": PROJECT}, {}, "."),
        ({"setup.py": "", "python/pyproject.toml": PROJECT}, {"repo_subdir": "python"}, "python"),
        ({"pyproject.toml": "[tool.black]\n", "python/pyproject.toml": PROJECT}, {}, "python"),
        ({"lib/setup.py": "", "other/setup.py": "", "lib/b/asv.conf.json": ""}, {"path": "lib/b/asv.conf.json"}, "lib"),
        ({"docs/setup.py": "", "z/pkg/setup.py": "", "core/setup.py": ""}, {}, "core"),
        ({"pyproject.toml": "[tool.poetry]\nname='x'\n"}, {}, "."),
        ({"b/setup.py": "", "a/pyproject.toml": PROJECT, "python/setup.py": ""}, {"project": "Fast_Thing"}, "a"),
        ({"python/setup.py": "", "benchmarks/setup.py": ""}, {"path": "benchmarks/asv.conf.json"}, "python"),
        ({"testsuite/setup.py": "", "package/setup.py": ""}, {"path": "benchmarks/asv.conf.json"}, "package"),
    ],
)
def test_the_package_root_is_found_by_the_first_rule_that_fits(tree_of, files, settings, expected):
    root = find_package_root(tree_of(files), config(**settings))
    assert root.folder == expected
    assert root.reason


@pytest.mark.parametrize(
    ("text", "is_root", "unread"),
    [
        ("tool = 1", False, 0),
        ("project = 1\ntool = []", True, 0),
        ("[tool]\npoetry = 1", True, 0),
        ("[tool.poetry]\nname = 'x'\npackages = 1", True, 0),
        (f"project = {'[' * 3000}{']' * 3000}", False, 1),
        (f"project = {'9' * 5000}", False, 1),
        (f"# {'x' * 200_000}\n[project]", False, 1),
    ],
)
def test_a_pyproject_of_any_form_is_read_or_recorded(tree_of, text, is_root, unread):
    tree = tree_of({"pyproject.toml": text})
    assert is_package_root(tree, ".") is is_root
    assert license_of(tree) == ""
    assert len(read_metadata(tree, ".").unread) == unread


def test_what_the_commands_install_comes_first(tree_of):
    tree = tree_of({"setup.py": "", "python/setup.py": ""})
    assert find_package_root(tree, config(), installed_folder="python").folder == "python"


def test_a_repository_without_anything_to_install_fails(tree_of):
    with pytest.raises(ItemFailure) as caught:
        find_package_root(tree_of({"README": "", "docs/setup.py": ""}), config())
    assert caught.value.kind == "package_root"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"pyproject.toml": PROJECT, "fast_thing/__init__.py": "", "other/__init__.py": ""}, "fast_thing"),
        ({"pyproject.toml": PROJECT, "src/fast_thing/__init__.py": ""}, "fast_thing"),
        ({"pyproject.toml": PROJECT, "fast_thing.py": ""}, "fast_thing"),
        ({"pyproject.toml": PROJECT, "quick/__init__.py": "", "tests/__init__.py": ""}, "quick"),
        ({"pyproject.toml": PROJECT, "quick/__init__.py": "", "slow/__init__.py": ""}, ""),
        ({"setup.py": "setup(name='a', packages=['b', 'b.c'])", "b/__init__.py": "", "c/__init__.py": ""}, "b"),
        ({"setup.py": "setup(name='a', py_modules=['gone'])"}, ""),
        ({"setup.py": "setup(name='a.b')", "src/a/b/__init__.py": "", "c/__init__.py": ""}, "a"),
        ({"setup.py": "setup(name='a.b')", "a/c/__init__.py": "", "c/__init__.py": ""}, "c"),
        ({"setup.cfg": "[options]\npackage_dir =\n  = code\n", "setup.py": "", "code/deep/__init__.py": ""}, "deep"),
    ],
)
def test_the_import_name_is_one_that_exists_at_the_commit(tree_of, files, expected):
    tree = tree_of(files)
    assert find_import_name(tree, ".", read_metadata(tree, ".")) == expected


def test_asvs_project_then_imports_give_an_undeclared_name(tree_of):
    tree = tree_of({"setup.py": "", "data_lad/__init__.py": "", "other/__init__.py": "", "third/__init__.py": ""})
    said = read_metadata(tree, ".")
    assert find_import_name(tree, ".", said, project="Data-Lad", imported=["numpy", "other"]) == "data_lad"
    assert find_import_name(tree, ".", said, project="elsewhere", imported=["numpy", "other"]) == "other"
    assert find_import_name(tree, ".", said, imported=["numpy"]) == ""
