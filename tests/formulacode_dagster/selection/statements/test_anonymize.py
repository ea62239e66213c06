import pytest

from formulacode_dagster.selection.statements.anonymize import People


def test_a_person_keeps_one_placeholder_across_texts() -> None:
    people = People(["Wile-E"])
    assert people.anonymize("@wile-e asked @roadrunner") == "@user1 asked @user2"
    assert people.anonymize("Thanks @RoadRunner, says Wile-E") == "Thanks @user2, says @user1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ping @jdoe!", "ping @user1!"),
        ("ping @acme/core-team now", "ping @user1 now"),
        ("(@jdoe)", "(@user1)"),
        ("mail jane@example.org please", "mail @user1 please"),
        ("by Jane Doe <jane@example.org>, ok", "by @user1, ok"),
        ("see https://github.com/jdoe for more", "see @user1 for more"),
        ("see [Jane](https://github.com/jdoe) for more", "see @user1 for more"),
        ("gist https://gist.github.com/jdoe/0123456789abcdef0123456789abcdef", "gist @user1"),
        ("**@jdoe** and @jdoe", "**@user1** and @user1"),
    ],
)
def test_people_are_replaced_in_prose(text: str, expected: str) -> None:
    assert People().anonymize(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "```python\n@property\ndef x(self): ...\n@njit\ndef f(): ...\n```",
        "```\nuser@example.org\n@jdoe\n```",
        "`@jdoe` and `a@b.org`",
        "use @property or @njit or @lru_cache here",
        "@custom_decorator\ndef f(): ...",
        "@custom\ndef f():\n    pass",
        "@functools.wraps(f) keeps the name",
        "@numba.njit is fine",
        "x = a @ b",
        "c=a@b",
        "https://github.com/acme/wheels stays",
        "git@github.com:acme/other.git stays",
        "/home/runner/work/wheels",
    ],
)
def test_code_is_left_alone(text: str) -> None:
    assert People().anonymize(text) == text


def test_home_directories_in_tracebacks_lose_their_owner() -> None:
    text = '```\n  File "/home/jdoe/src/x.py"\n  File "C:\\Users\\Jane\\x.py"\n  File "/Users/jane/x.py"\n```'
    expected = '```\n  File "/home/user/src/x.py"\n  File "C:\\Users\\user\\x.py"\n  File "/Users/user/x.py"\n```'
    assert People().anonymize(text) == expected


def test_a_login_that_is_a_word_is_replaced_only_where_it_is_a_mention() -> None:
    assert People(["stack"]).anonymize("the stack of @stack") == "the stack of @user1"


def test_anonymizing_twice_changes_nothing_more() -> None:
    people = People(["Wile-E"])
    once = people.anonymize("Wile-E and @jdoe")
    assert people.anonymize(once) == once
