from hypothesis import given
from hypothesis import strategies as st

from formulacode_dagster.building.declarations.declared_requirement import (
    DeclaredRequirement,
    parse_requirement_lines,
    read_requirements_file,
    read_requirements_files,
    validate,
)


def declared(*texts):
    return [DeclaredRequirement(text=text, source="setup.py") for text in texts]


def test_the_marker_platform_system_is_left_untouched():
    marker = "colorama; platform_system == 'Windows'"
    assert [item.text for item in validate(declared(marker)).accepted] == [marker]


def test_what_does_not_parse_is_dropped_and_recorded_and_the_rest_stays():
    validated = validate(declared("numpy>=1.2", "scipy (>=1,,", "arrow"))
    assert [item.text for item in validated.accepted] == ["numpy>=1.2", "arrow"]
    assert validated.dropped[0].requirement == "scipy (>=1,,"
    assert validated.dropped[0].source == "setup.py"
    assert "does not parse" in validated.dropped[0].reason


def test_urls_are_dropped_and_the_project_itself_is_no_requirement():
    validated = validate(declared("x @ git+https://example.org/x", "My_Project[all]", "attrs"), own_name="my-project")
    assert [item.text for item in validated.accepted] == ["attrs"]
    assert [drop.requirement for drop in validated.dropped] == ["x @ git+https://example.org/x"]


def test_a_requirements_file_is_read_with_its_includes(tree_of):
    tree = tree_of(
        {
            "req/all.txt": "# all\n-r base.txt\n-r ../all-of-it.txt\npandas>=2  # why\n-e .\n--index-url https://x\n",
            "req/base.txt": "numpy \\\n  >=1.2 --hash=sha256:00\n-r all.txt\n",
        }
    )
    texts = [item.text for item in read_requirements_file(tree, "req/all.txt")]
    assert [" ".join(text.split()) for text in texts] == ["numpy >=1.2", "pandas>=2", "-e ."]


def test_requirements_files_that_include_each_other_are_read_once(tree_of):
    files = {f"r{level}.txt": f"-r r{level + 1}.txt\n-r ./r{level + 1}.txt\nown{level}\n" for level in range(40)}
    tree = tree_of({**files, "r40.txt": "-r r0.txt\nlast\n"})
    texts = [item.text for item in read_requirements_file(tree, "r0.txt")]
    assert texts == ["last", *(f"own{level}" for level in reversed(range(40)))]
    assert [item.text for item in read_requirements_files(tree, ".", ["r40.txt", "r39.txt"])] == texts[1:] + texts[:1]
    chain = tree_of({f"r{level}.txt": f"-r r{level + 1}.txt\nown\n" for level in range(2000)})
    assert 0 < len(read_requirements_file(chain, "r0.txt")) < 2000


@given(st.text(max_size=60))
def test_whatever_is_written_is_accepted_as_it_stands_or_dropped_by_name(text):
    for item in parse_requirement_lines(text, source="x"):
        validated = validate([item])
        kept = [entry.text for entry in validated.accepted] + [drop.requirement for drop in validated.dropped]
        assert kept == [item.text]
