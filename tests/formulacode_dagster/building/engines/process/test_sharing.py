from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from formulacode_dagster.building.engines import folders
from formulacode_dagster.building.engines.process import sharing
from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.engines.process.layout import Layout
from formulacode_dagster.building.engines.process.removal import finish_removals
from formulacode_dagster.building.engines.processes import can_confine
from formulacode_dagster.building.engines.protocol import Session
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.models.image import BuiltImage, EngineName
from tests.support.images import LIMITS, Sample, as_image

pytestmark = pytest.mark.network
# files can be protected from another user only, which takes root: CI has both
as_another_user = pytest.mark.skipif(not can_confine() or os.getuid() != 0, reason="code would run as our own user")

INSTALLED, PACKAGE = "setuptools/version.py", "tinypure/__init__.py"


@pytest.fixture
def image(pure_image: BuiltImage, tmp_path: Path) -> BuiltImage:
    """An image of the test's own: what is written to it reaches no other test. Its sessions can write to it."""
    folder = Path(shutil.copytree(pure_image.location, tmp_path / "image", symlinks=True))
    image = pure_image.model_copy(update={"location": str(folder)})
    give_up(image)
    return image


def give_up(image: BuiltImage) -> None:
    """Make the files of *image* those of the user that its code runs as, as where root runs nothing."""
    layout = Layout(Path(image.location))
    layout.hand_over()
    sharing.note_installed(layout)


def in_image(image: BuiltImage, name: str) -> Path:
    (path,) = Path(image.location).glob(f"venv/lib/python3*/site-packages/{name}")
    return path


def in_session(session: Session, name: str) -> Path:
    (path,) = Path(session.python).parents[1].glob(f"lib/python3*/site-packages/{name}")
    return path


def run(session: Session, code: str) -> None:
    done = session.run([session.python, "-c", code], timeout=30)
    assert done.ok, done.stderr


def test_installed_files_are_shared_and_what_code_may_write_to_is_not(engine: ProcessEngine, image: BuiltImage) -> None:
    with engine.session(image, run_id="run") as session, engine.session(image, run_id="run", like=session) as other:
        for place in (session, other):
            assert in_session(place, INSTALLED).samefile(in_image(image, INSTALLED))
            assert not in_session(place, PACKAGE).samefile(in_image(image, PACKAGE))
        assert not in_session(other, PACKAGE).samefile(in_session(session, PACKAGE))
        checkouts = [Path(place, "README.md") for place in (session.repository, other.repository)]
        assert [path.stat().st_nlink for path in checkouts] == [1, 1]


def test_files_replaced_in_a_session_or_by_its_package_change_no_other(
    engine: ProcessEngine, image: BuiltImage
) -> None:
    before = in_image(image, INSTALLED).read_bytes(), in_image(image, PACKAGE).read_bytes()
    with engine.session(image, run_id="run") as session, engine.session(image, run_id="run", like=session) as other:
        replaced, written = in_session(other, INSTALLED), in_session(other, PACKAGE)
        new = str(replaced.with_name("new"))
        run(other, f"import os; open({new!r}, 'w').write('1'); os.replace({new!r}, {str(replaced)!r})")
        run(other, f"open({str(written)!r}, 'a').write('# mine')")
        assert (replaced.read_bytes(), written.read_bytes()) == (b"1", before[1] + b"# mine")
        assert (in_session(session, INSTALLED).read_bytes(), in_session(session, PACKAGE).read_bytes()) == before
    assert (in_image(image, INSTALLED).read_bytes(), in_image(image, PACKAGE).read_bytes()) == before


@pytest.mark.parametrize("is_copy", [False, True], ids=["of the image", "like another"])
def test_writing_an_installed_file_in_place_fails_and_drops_the_image(
    engine: ProcessEngine, image: BuiltImage, is_copy: bool
) -> None:
    def write() -> None:
        with engine.session(image, run_id="run") as first:
            if not is_copy:
                run(first, f"open({str(in_session(first, INSTALLED))!r}, 'a').write('#')")
                return
            with engine.session(image, run_id="run", like=first) as second:
                run(second, f"open({str(in_session(second, INSTALLED))!r}, 'a').write('#')")

    with pytest.raises(ItemFailure, match=r"setuptools/version\.py and 0 other") as caught:
        write()
    assert caught.value.kind == "image_changed"
    assert not engine.exists(image)


HIDDEN = """
import os
path, moved = {path!r}, {moved!r}
facts = os.stat(path)
if moved:
    os.rename(path, moved)
    path = moved
with open(path, "r+b") as file:
    file.write(b"#")
os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
"""
"""Code that writes to a file in place, and sets its time back."""


def write_unseen(session: Session, moved: str = "") -> None:
    path = in_session(session, INSTALLED)
    run(session, HIDDEN.format(path=str(path), moved=str(path.with_name(moved)) if moved else ""))


@pytest.mark.parametrize("moved", ["", "moved.py"])
def test_a_write_whose_time_was_set_back_fails_and_drops_the_image(
    engine: ProcessEngine, image: BuiltImage, moved: str
) -> None:
    def write() -> None:
        with engine.session(image, run_id="run") as session:
            write_unseen(session, moved)

    with pytest.raises(ItemFailure, match=r"setuptools/version\.py and 0 other") as caught:
        write()
    assert caught.value.kind == "image_changed"
    assert not engine.exists(image)


def test_a_write_whose_time_was_set_back_by_a_session_that_was_killed_is_found_by_the_next(
    engine: ProcessEngine, image: BuiltImage
) -> None:
    killed = engine.session(image, run_id="run")
    write_unseen(killed.__enter__())
    with pytest.raises(ItemFailure, match=r"setuptools/version\.py .* is not what was built"):
        engine.session(image, run_id="run").__enter__()
    with pytest.raises(ItemFailure, match="wrote to"):
        killed.__exit__(None, None, None)


def test_only_files_that_another_session_may_have_written_to_are_read(
    engine: ProcessEngine, image: BuiltImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    sha256 = sharing._sha256
    monkeypatch.setattr(sharing, "_sha256", lambda path: read.append(path) or sha256(path))
    for _ in range(2):
        with engine.session(image, run_id="run"):
            pass
        finish_removals()
    assert read == []
    killed = engine.session(image, run_id="run")
    folder = Path(killed.__enter__().repository).parent
    for _ in range(2):
        read.clear()
        with engine.session(image, run_id="run"):
            assert read, "files that the killed one had"
        finish_removals()
    shutil.rmtree(folder)
    with engine.session(image, run_id="run"):
        pass
    finish_removals()
    read.clear()
    with engine.session(image, run_id="run"):
        assert read == [], "all were checked since there is no trace of it any more"
    with suppress(ItemFailure, FileNotFoundError):
        killed.__exit__(None, None, None)


def test_a_file_that_a_session_has_added_is_not_shared_with_its_copy(engine: ProcessEngine, image: BuiltImage) -> None:
    with engine.session(image, run_id="run") as first:
        replaced = in_session(first, INSTALLED)
        added = replaced.with_name("added.py")
        run(first, f"import os; os.unlink({str(replaced)!r})")
        run(first, f"for path in {[str(added), str(replaced)]!r}: open(path, 'w').write('1')")
        with engine.session(image, run_id="run", like=first) as second:
            for path in (in_session(second, INSTALLED), in_session(second, "setuptools/added.py")):
                run(second, f"open({str(path)!r}, 'w').write('2')")
        assert [added.read_text(), replaced.read_text()] == ["1", "1"]


def test_an_image_that_was_written_to_is_built_again(pure: Sample, pure_image: BuiltImage, tmp_path: Path) -> None:
    engine = ProcessEngine(tmp_path / "engine", LIMITS)
    built = engine.build(pure_image.spec, Origins(pure.mirror))
    image = as_image(EngineName.PROCESS, pure_image.spec, built)
    give_up(image)

    def write() -> None:
        with engine.session(image, run_id="run") as session:
            run(session, f"open({str(in_session(session, INSTALLED))!r}, 'a').write('#')")

    with pytest.raises(ItemFailure, match="wrote to"):
        write()
    again = engine.build(pure_image.spec, Origins(pure.mirror))
    assert (again.digest, again.location) == (built.digest, built.location)
    with engine.session(image, run_id="run") as session:
        assert not in_session(session, INSTALLED).read_text().endswith("#")


WRITE = """
import os, sys
path = sys.argv[1]
for write in (
    lambda: open(path, "r+b"),
    lambda: os.truncate(path, 0),
    lambda: os.chmod(path, 0o777),
    lambda: os.utime(path, (0, 0)),
    lambda: os.chown(path, os.getuid(), -1),
):
    try:
        write()
    except PermissionError:
        continue
    sys.exit("written")
os.rename(path, path + ".moved")
with open(path, "w") as mine:
    mine.write("1")
"""


@as_another_user
def test_code_cannot_write_to_installed_files_that_are_roots(
    engine: ProcessEngine, image: BuiltImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = in_image(image, INSTALLED)
    private.chmod(0o600)
    sharing.note_installed(Layout(Path(image.location)), protect=True)
    before = private.read_bytes()
    monkeypatch.setattr(sharing, "_sha256", None)  # no file is read
    with engine.session(image, run_id="run") as session, engine.session(image, run_id="run", like=session) as other:
        for place in (session, other):
            path = in_session(place, INSTALLED)
            assert path.samefile(private)
            run(place, f"import setuptools; open({str(path)!r}).close()")
            assert place.reinstall(timeout=60).ok
            done = place.run([place.python, "-c", WRITE, str(path)], timeout=30)
            assert done.ok, done.stderr
            assert path.read_text() == "1", "a session may replace what is its own"
    assert private.read_bytes() == before
    assert engine.exists(image)
    assert not list(Layout(Path(image.location)).unchecked.iterdir())


def test_files_are_checked_where_code_is_not_confined(image: BuiltImage, tmp_path: Path) -> None:
    layout, folder = Layout(Path(image.location)), tmp_path / "sessions" / "one"
    folder.mkdir(parents=True)
    sharing.note_installed(layout, protect=os.getuid() == 0)
    shared = sharing.share(layout, folder)
    (folder / "venv" / "pyvenv.cfg").write_text("")
    assert not shared.are_protected
    assert shared.begun_in(folder).written_in(folder) == ["venv/pyvenv.cfg"]


@as_another_user
def test_what_is_built_is_protected(pure_image: BuiltImage) -> None:
    for name in (INSTALLED, PACKAGE):
        facts = in_image(pure_image, name).stat()
        assert (facts.st_uid, facts.st_mode & 0o022) == (0, 0)


def test_an_error_in_a_session_is_raised_and_the_image_it_wrote_to_is_gone(
    engine: ProcessEngine, image: BuiltImage
) -> None:
    def write() -> None:
        with engine.session(image, run_id="run") as session:
            in_session(session, INSTALLED).write_text("")
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        write()
    assert not engine.exists(image)


@pytest.mark.parametrize(
    "change",
    [Path.unlink, lambda path: path.write_text(""), lambda path: path.chmod(0o600)],
    ids=["gone", "written", "mode"],
)
def test_no_session_opens_in_an_image_that_one_wrote_to_which_was_killed(
    engine: ProcessEngine, image: BuiltImage, change: Callable[[Path], None]
) -> None:
    change(in_image(image, INSTALLED))
    with pytest.raises(ItemFailure, match=r"setuptools/version\.py .* is not what was built") as caught:
        engine.session(image, run_id="run").__enter__()
    assert caught.value.kind == "image_gone"
    assert not engine.exists(image), "it would never be built again"


def test_what_was_built_before_there_were_links_is_copied(engine: ProcessEngine, image: BuiltImage) -> None:
    Layout(Path(image.location)).installed.unlink()
    with engine.session(image, run_id="run") as session, engine.session(image, run_id="run", like=session) as other:
        assert [in_session(place, INSTALLED).stat().st_nlink for place in (session, other)] == [1, 1]


def test_on_a_file_system_without_links_all_is_copied(
    engine: ProcessEngine, image: BuiltImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_after_the_first(source: Path, target: Path, names: tuple[str, ...]) -> None:
        folders.link_tree(source, target, names[:1])
        folders.run_program(["false"]).check_returncode()

    monkeypatch.setattr(sharing, "link_tree", none_after_the_first)
    with engine.session(image, run_id="run") as session:
        assert in_session(session, INSTALLED).stat().st_nlink == 1
        run(session, "import tinypure, asv_runner")


def test_a_record_that_names_files_elsewhere_copies_none_of_them(
    engine: ProcessEngine, image: BuiltImage, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    (Path(image.location) / "venv" / "away").symlink_to(tmp_path)
    (record,) = Path(image.location).glob("venv/lib/python3*/site-packages/tinypure-*.dist-info/RECORD")
    up = os.path.relpath(outside, record.parents[1])
    with record.open("a") as file:
        file.write(f"{up},,\n../../../away/outside,,\n/etc/passwd,,\nnot/there.py,,\n")
    sharing.note_installed(Layout(Path(image.location)))
    inode = outside.stat().st_ino
    with engine.session(image, run_id="run") as session:
        assert in_session(session, INSTALLED).samefile(in_image(image, INSTALLED))
    assert (outside.read_text(), outside.stat().st_ino) == ("x", inode)


@pytest.mark.parametrize(
    "content",
    [None, "x" * (csv.field_size_limit() + 1), "a\0b.py,,\n", f"{'x' * 300}.py,,\n", "round/round.py,,\n"],
    ids=["gone", "field too long", "no path", "name too long", "circle"],
)
def test_code_that_takes_the_record_away_or_breaks_it_stops_no_session(
    engine: ProcessEngine, image: BuiltImage, content: str | None
) -> None:
    with engine.session(image, run_id="run") as session:
        record = in_session(session, "tinypure-*.dist-info/RECORD")
        (record.parents[1] / "round").symlink_to("round")
        record.unlink()
        if content is not None:
            record.write_text(content)
        with engine.session(image, run_id="run", like=session) as other:
            run(other, "import tinypure")


def test_an_image_that_cannot_be_laid_stops_the_stage(
    engine: ProcessEngine, image: BuiltImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        folders.run_program(["false"]).check_returncode()

    monkeypatch.setattr(sharing, "link_tree", full)
    monkeypatch.setattr(sharing, "copy_tree", full)
    with pytest.raises(OutsideSystemError, match="cannot lay"):
        engine.session(image, run_id="run").__enter__()
