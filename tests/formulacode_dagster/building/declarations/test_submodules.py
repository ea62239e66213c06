import pytest

from formulacode_dagster.building.declarations.submodules import choose_submodules

MODULES = """
[submodule "tskit"]
\tpath = git-submodules/tskit
\turl = https://github.com/tskit-dev/tskit.git
[submodule "helpers"]
    path = helpers
    url = ../helpers.git
[submodule "mathjax"]
    path = doc/_static/mathjax
    url = https://github.com/scipy/scipy-mathjax
[submodule "lib"]
    path = vendor/lib
    url = https://gitlab.com/someone/lib.git
"""
LINKS = {
    path: str(n) * 40
    for n, path in enumerate(("git-submodules/tskit", "helpers", "doc/_static/mathjax", "vendor/lib", "lost"))
}
SETUP = 'import os\nroot = os.path.join("git-submodules", "tskit", "c")\n# helpers\n'


def choose(tree, *, wanted=False):
    return choose_submodules(tree, LINKS, ".", repository="acme/fast", wanted=wanted)


def test_a_submodule_that_a_build_file_names_is_laid_in(tree_of):
    found = choose(tree_of({".gitmodules": MODULES, "setup.py": SETUP}))
    assert [(m.path, m.repository, m.sha) for m in found.submodules] == [
        ("git-submodules/tskit", "tskit-dev/tskit", "0" * 40)
    ]
    assert "submodule helpers is named by no build file: left out" in found.notes


def test_when_a_repair_asks_all_but_documents_and_other_hosts_are_laid_in(tree_of):
    found = choose(tree_of({".gitmodules": MODULES, "setup.py": SETUP}), wanted=True)
    assert [(m.path, m.repository) for m in found.submodules] == [
        ("git-submodules/tskit", "tskit-dev/tskit"),
        ("helpers", "acme/helpers"),
    ]
    assert found.notes == (
        "submodule doc/_static/mathjax belongs to documents: left out",
        "submodule lost has no address in .gitmodules: left out",
        "submodule vendor/lib is at https://gitlab.com/someone/lib.git, not on GitHub: left out",
    )


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://github.com/a/b", "a/b"),
        ("https://github.com/a/b.git/", "a/b"),
        ("git://github.com/a/b.git", "a/b"),
        ("git@github.com:a/b.git", "a/b"),
        ("ssh://git@github.com/a/b", "a/b"),
        ("../../other/x.git", "other/x"),
        ("../../../x", None),
        ("https://github.com.evil.example/a/b", None),
        ("https://github.com/a/b;rm", None),
    ],
)
def test_addresses_are_told_as_owner_and_name(tree_of, address, name):
    tree = tree_of({".gitmodules": f'[submodule "x"]\n path = x\n url = {address}\n'})
    found = choose_submodules(tree, {"x": "1" * 40}, ".", repository="acme/fast", wanted=True).submodules
    assert [module.repository for module in found] == ([name] if name else [])


def test_a_file_that_cannot_be_parsed_names_no_address(tree_of):
    tree = tree_of({".gitmodules": "path = x\n"})
    assert choose_submodules(tree, {"x": "1" * 40}, ".", repository="a/b", wanted=True).submodules == ()
