import pytest
from pydantic import ValidationError

from sandbox.samples.definitions import Edit
from sandbox.samples.edits import apply

TREE = {"a.py": b"one\ntwo\n", "b.py": b"two\ntwo\n"}


def test_each_kind_of_edit_does_what_it_says() -> None:
    edits = [
        Edit(path="a.py", old="two\n", new="three\n"),
        Edit(path="b.py", move_to="c.py"),
        Edit(path="d.bin", hexadecimal="00ff"),
        Edit(path="e.txt", latin1="\u00fc"),
        Edit(path="f.py", content="x = 1\n"),
        Edit(path="g.py", table_lines=2),
    ]
    after = apply(TREE, edits)
    assert after["a.py"] == b"one\nthree\n"
    assert after["c.py"] == TREE["b.py"]
    assert "b.py" not in after
    assert (after["d.bin"], after["e.txt"], after["f.py"]) == (b"\x00\xff", b"\xfc", b"x = 1\n")
    assert after["g.py"].count(b"\n    (") == 2
    assert apply(after, [Edit(path="f.py", delete=True)]).keys() == after.keys() - {"f.py"}
    assert TREE == {"a.py": b"one\ntwo\n", "b.py": b"two\ntwo\n"}


@pytest.mark.parametrize(
    "edit",
    [
        Edit(path="a.py", old="four", new="five"),
        Edit(path="b.py", old="two", new="three"),
        Edit(path="none.py", old="two", new="three"),
        Edit(path="none.py", delete=True),
        Edit(path="none.py", move_to="c.py"),
        Edit(path="a.py", move_to="b.py"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(edit: Edit) -> None:
    with pytest.raises(ValueError, match=r"none\.py|a\.py|b\.py"):
        apply(TREE, [edit])


@pytest.mark.parametrize(
    "kinds", [{}, {"old": "x"}, {"content": "", "delete": True}, {"old": "x", "new": "y", "latin1": ""}]
)
def test_an_edit_is_of_one_kind(kinds: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="has to be of one kind"):
        Edit(path="a.py", **kinds)
