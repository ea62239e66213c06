from __future__ import annotations

import pytest

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName, item_key, task_id


def test_items_are_read_as_people_write_them() -> None:
    assert str(ItemName.parse("astropy/astropy#16222")) == "astropy/astropy#16222"
    assert ItemName.parse(" python-hyper/h11 ").number is None
    assert ItemName.parse("a/b.c_d-e#1").repository == "a/b.c_d-e"


@pytest.mark.parametrize("text", ["astropy", "a/b#0", "a/b#x", "a/b/c", "a/b#12#3", "-a/b", "a b/c", ""])
def test_anything_else_is_refused_with_the_right_form(text: str) -> None:
    with pytest.raises(ConfigurationError, match="owner/repo#123"):
        ItemName.parse(text)


def test_one_format_for_keys_and_task_ids() -> None:
    assert item_key("a/b") == "a/b"
    assert item_key("a/b", 7) == "a/b#7"
    assert task_id("networkx/networkx", 8148) == "networkx__networkx-8148"
