import shlex

import pytest

from formulacode_dagster.building.declarations.install_arguments import install_arguments


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("-U numpy --upgrade --pre scipy -q six", [("", "numpy"), ("", "scipy"), ("", "six")]),
        ("-r a.txt --requirement=b.txt -rc.txt -qr d.txt", [("-r", f"{name}.txt") for name in "abcd"]),
        ("-e . --editable=.[x] -ve ./sub", [("-e", "."), ("-e", ".[x]"), ("-e", "./sub")]),
        ("-Csetup-args=-Dx -c bounds.txt six", [("-C", "setup-args=-Dx"), ("-c", "bounds.txt"), ("", "six")]),
        ("--group dev --no-deps numpy -r", [("--group", "dev"), ("", "numpy"), ("-r", "")]),
    ],
)  # fmt: skip
def test_each_word_comes_with_the_option_whose_value_it_is(words: str, arguments: list[tuple[str, str]]) -> None:
    assert list(install_arguments(shlex.split(words))) == arguments


def test_short_options_are_those_of_the_tool() -> None:
    words = ["-y", "-n", "x", "-f", "environment.yml", "numpy"]
    assert list(install_arguments(words, tool="conda")) == [("-n", "x"), ("-f", "environment.yml"), ("", "numpy")]
    assert list(install_arguments(["-yqq", "-o", "X=y", "gcc"], tool="apt")) == [("-o", "X=y"), ("", "gcc")]
