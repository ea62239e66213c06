from __future__ import annotations

import pytest

from formulacode_dagster.building.specs.wheels import has_wheels


def pylock(*wheels: tuple[str, ...]) -> str:
    lines = ['lock-version = "1.0"', 'created-by = "uv"']
    for names in wheels:
        listed = ", ".join(f'{{ url = "https://files.example.org/ab/{name}", hashes = {{}} }}' for name in names)
        lines += ["[[packages]]", 'name = "x"', 'version = "1.0"', f"wheels = [{listed}]"]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("name", "python", "fits"),
    [
        ("six-1.16.0-py2.py3-none-any.whl", "3.7", True),
        ("numpy-2.1.0-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "3.12", True),
        ("numpy-2.1.0-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "3.13", False),
        ("numpy-1.16.0-cp37-cp37m-manylinux1_x86_64.whl", "3.7", True),
        ("cryptography-42.0.0-cp39-abi3-manylinux_2_28_x86_64.whl", "3.12", True),
        ("numpy-2.1.0-cp312-cp312-macosx_14_0_arm64.whl", "3.12", False),
        ("numpy-2.1.0-cp312-cp312-manylinux_2_34_x86_64.whl", "3.12", False),
        ("a%2Bb-1.0%2Blocal-py3-none-any.whl", "3.12", False),
        ("six-1.16.0%2Blocal-py3-none-any.whl", "3.12", True),
        ("not a wheel.whl", "3.12", False),
    ],
)
def test_a_wheel_fits_when_its_tags_do(name: str, python: str, fits: bool) -> None:
    assert has_wheels(pylock((name,)), python) is fits


def test_every_package_needs_one_that_fits_and_no_lock_has_none() -> None:
    fitting, other = "six-1.16.0-py3-none-any.whl", "numpy-2.1.0-cp312-cp312-win_amd64.whl"
    assert has_wheels(pylock((other, fitting), (fitting,)), "3.12")
    assert not has_wheels(pylock((fitting,), (other,)), "3.12")
    assert not has_wheels(pylock((fitting,), ()), "3.12")
    assert not has_wheels("", "3.12")
