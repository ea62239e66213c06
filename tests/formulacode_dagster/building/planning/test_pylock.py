import tomllib

import pytest
from packaging.pylock import Pylock

from formulacode_dagster.building.planning.pylock import read_pylock, requirements_of, without_index
from formulacode_dagster.models.errors import ItemFailure

CONTENT = "be/be/" + "7" * 60


def pylock(url, more=""):
    return (
        'lock-version = "1.0"\ncreated-by = "uv"\nrequires-python = ">=3.9"\n\n[[packages]]\nname = "attrs"\n'
        f'version = "21.4.0"\n{more}wheels = [{{ url = "{url}", upload-time = 2021-12-29T13:15:06Z, '
        f'hashes = {{ sha256 = "{"2" * 64}" }} }}]\n'
    )


def wheel(text):
    (package,) = Pylock.from_dict(tomllib.loads(text)).packages
    return package.wheels[0]


def test_the_public_urls_stay_without_what_follows_the_path():
    kept = without_index(pylock(f"https://files.pythonhosted.org/packages/{CONTENT}/attrs-21.4.0-py3-none-any.whl#x=1"))
    assert wheel(kept).url == f"https://files.pythonhosted.org/packages/{CONTENT}/attrs-21.4.0-py3-none-any.whl"


def test_a_mirrors_urls_become_the_public_ones_and_a_private_indexs_a_path():
    mirror = without_index(
        pylock(
            f"https://bob:hunter2@mirror.corp/pypi/packages/{CONTENT}/attrs-21.4.0-py3-none-any.whl",
            'index = "https://bob:hunter2@mirror.corp/simple"\n',
        )
    )
    assert wheel(mirror).url == f"https://files.pythonhosted.org/packages/{CONTENT}/attrs-21.4.0-py3-none-any.whl"
    private = without_index(pylock("https://bob:hunter2@index.corp/files/attrs-21.4.0-py3-none-any.whl?token=hunter2"))
    assert (wheel(private).url, wheel(private).path) == (None, "attrs-21.4.0-py3-none-any.whl")
    for text in (mirror, private):
        assert not any(secret in text for secret in ("corp", "hunter2", "bob"))


def test_markers_are_gone_since_the_lock_is_for_one_interpreter():
    text = without_index(
        pylock(
            "https://files.pythonhosted.org/attrs-21.4.0-py3-none-any.whl",
            "marker = \"python_full_version < '3.12'\"\n",
        )
    )
    assert "marker" not in text
    assert Pylock.from_dict(tomllib.loads(text)).packages[0].marker is None


def test_the_requirements_file_has_every_hash_once():
    assert requirements_of(pylock("https://files.pythonhosted.org/attrs-21.4.0-py3-none-any.whl")) == (
        f"attrs==21.4.0 \\\n    --hash=sha256:{'2' * 64}\n"
    )


def test_pure_wheels_and_the_day_of_the_first_are_known():
    (attrs,) = read_pylock(pylock("https://files.pythonhosted.org/attrs-21.4.0-py3-none-any.whl"))
    assert (attrs.is_pure, attrs.first_upload.year) == (True, 2021)
    (compiled,) = read_pylock(pylock("https://files.pythonhosted.org/attrs-21.4.0-cp39-cp39-manylinux1_x86_64.whl"))
    assert not compiled.is_pure


@pytest.mark.parametrize("more", ['vcs = { type = "git" }\n', 'directory = { path = "/home/bob" }\n'])
def test_what_is_no_hashed_pin_is_refused(more):
    with pytest.raises(ItemFailure, match="no hashed pin"):
        read_pylock(pylock("https://files.pythonhosted.org/x.whl", more))
