from formulacode_dagster.measurement.machine import machine
from formulacode_dagster.measurement.suite import suite_overlay


class Tree:
    """One commit's files."""

    def __init__(self, commit, files):
        self.commit, self.files = commit, files

    def read(self, commit, path):
        assert commit == self.commit
        return self.files.get(path)

    def list(self, commit, folder=""):
        assert commit == self.commit
        return sorted(path for path in self.files if path.startswith(f"{folder}/"))


TREE = Tree(
    "c" * 40, {"benchmarks/a.py": b"a", "benchmarks/data/b.bin": b"\0", "pkg/core.py": b"c", "benchmarks2/x.py": b""}
)


def test_a_pull_request_that_touches_the_suite_brings_all_of_it(pull_request):
    found = suite_overlay(TREE, pull_request("pkg/core.py", "benchmarks/a.py"), "benchmarks")
    assert found == {"benchmarks/a.py": b"a", "benchmarks/data/b.bin": b"\0"}


def test_a_pull_request_that_leaves_the_suite_alone_brings_nothing(pull_request):
    assert suite_overlay(TREE, pull_request("pkg/core.py", "benchmarks2/x.py"), "benchmarks") == {}


def test_the_machine_is_named_by_its_processor_and_cores(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: Fast CPU 3000\nflags\t: x\n")
    assert machine(info).startswith("Fast CPU 3000, ")
    assert "cores" in machine(tmp_path / "missing")
