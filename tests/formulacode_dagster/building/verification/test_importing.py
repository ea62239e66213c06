from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.building.engines.files import Area
from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.building.verification.facts import FileFact, ImageFacts
from formulacode_dagster.building.verification.importing import Imported, imports, modules_of, tops_of
from formulacode_dagster.building.verification.tamper_scan import Distribution

SITE = "lib/python3.11/site-packages"
ENDED = Completed(0, b"", b"", 1.0)
TOPS = frozenset({"fast"})


def distribution(*paths: str) -> Distribution:
    return Distribution("fast", "1.0", {f"{SITE}/{path}": "" for path in paths}, is_local=True)


def facts_of(*extensions: str) -> ImageFacts:
    facts = ImageFacts()
    facts.files[Area.ENVIRONMENT][f"{SITE}/fast/__init__.py"] = FileFact(0, None, "", "", "")
    for path in extensions:
        facts.files[Area.ENVIRONMENT][f"{SITE}/{path}"] = FileFact(0, None, "", "", "", is_extension=True)
    return facts


def test_every_compiled_extension_is_asked_for_and_libraries_are_not() -> None:
    paths = (
        "fast/__init__.py",
        "fast/_a.cpython-311-x86_64-linux-gnu.so",
        "fast/lib/b.abi3.so",
        "fast/libc.so",
        "one.py",
    )
    facts = facts_of(paths[1], paths[2])
    assert modules_of(facts, [distribution(*paths)], "fast") == ("fast", "fast._a", "fast.lib.b")
    assert modules_of(facts, [distribution(*paths)], "") == ("fast", "one", "fast._a", "fast.lib.b")


@pytest.mark.parametrize(
    ("package", "paths", "modules"),
    [
        ("geocat", ["geocat/comp/__init__.py", "geocat/comp/in/__init__.py"], ("geocat.comp",)),
        ("", ["geocat/comp/__init__.py", "geocat/comp/stats.py", "geocat_comp-1.dist-info/METADATA"], ("geocat.comp",)),
        ("geocat.comp", ["geocat/comp/__init__.py", "geocat/viz/__init__.py"], ("geocat.comp",)),
        ("", ["fast/__init__.py", "examples/one/__init__.py", "docs/conf.py"], ("fast",)),
        ("", ["plain/one.py"], ("plain",)),
    ],
)
def test_of_a_namespace_the_packages_in_it_are_imported(package: str, paths: list[str], modules: tuple[str]) -> None:
    built = [distribution(*paths)]
    assert modules_of(facts_of(), built, package) == modules
    assert tops_of(facts_of(), built) == {path.partition("/")[0] for path in paths if path.endswith(".py")}


def test_nothing_to_import_is_no_pass() -> None:
    assert not imports(Imported(()), TOPS).ok


def test_what_was_killed_while_importing_is_no_pass_and_has_a_name() -> None:
    late = Completed(-9, b"", b"", 300.0, timed_out=True)
    verdict = imports(Imported(("fast", "fast._a"), {}, late, "fast._a"), TOPS)
    assert (verdict.ok, verdict.rc) == (False, None)
    assert verdict.detail == "fast._a: timed out after 300 s"


def test_an_error_is_told_by_its_last_line_and_kept_whole() -> None:
    text = "Traceback (most recent call last):\n  ...\nImportError: libgeos_c.so.1: cannot open shared object file"
    verdict = imports(Imported(("fast", "fast._a"), {"fast._a": text}, ENDED), TOPS)
    assert not verdict.ok
    assert verdict.detail == "fast._a: ImportError: libgeos_c.so.1: cannot open shared object file"
    assert verdict.log_tail == text


@pytest.mark.parametrize(
    ("module", "missing", "ok"),
    [("fast.tests._ext", "pytest", True), ("fast._ext", "pytest", False), ("fast.tests._ext", "fast.inner", False)],
)
def test_only_an_extension_of_the_tests_may_lack_what_only_tests_need(module: str, missing: str, ok: bool) -> None:
    text = f"ModuleNotFoundError: No module named '{missing}'"
    verdict = imports(Imported(("fast", module), {module: text}, ENDED), TOPS)
    assert verdict.ok is ok
    assert module in verdict.detail


def test_the_gate_is_told_what_is_compiled_by_the_content_of_the_file(tmp_path: Path) -> None:
    import io

    from formulacode_dagster.building.engines.files import ImageFile
    from formulacode_dagster.building.verification.facts import gather_facts

    content = {"a/lib.so": b"\x7fELF", "a/mod.so": b"\x7fELF..PyInit_mod\0..", "a/x.cpython-311.so": b"\x7fELF"}
    files = [
        ImageFile(Area.ENVIRONMENT, path, 0, None, len(data), lambda data=data: io.BytesIO(data))
        for path, data in content.items()
    ]
    facts = gather_facts(files, objects=tmp_path)
    assert {path for path, fact in facts.environment.items() if fact.is_extension} == {"a/mod.so", "a/x.cpython-311.so"}
