from formulacode_dagster.building.declarations.imports import imports_below, projects_of

SUITE = """
from __future__ import annotations
import os, numpy as np
import scipy.sparse
from . import common
from .common import Base
try:
    from sklearn.cluster import KMeans
except ImportError:
    KMeans = None


class Sparse:
    def setup(self):
        import dask.array
        self.numba = pytest.importorskip("numba")
        importlib.import_module(".relative", "here")
        importlib.import_module(self.name)
"""


def test_imports_count_wherever_they_stand_with_their_first_line(tree_of):
    found = imports_below(tree_of({"b/m.py": SUITE, "b/z.py": "import numpy\n", "pkg/x.py": "import cupy\n"}), "b")
    assert found == {
        "numpy": "b/m.py:3",
        "scipy.sparse": "b/m.py:4",
        "sklearn.cluster": "b/m.py:8",
        "dask.array": "b/m.py:15",
        "numba": "b/m.py:16",
    }


def test_a_file_that_cannot_be_parsed_imports_nothing(tree_of):
    assert imports_below(tree_of({"b/m.py": "import numpy\nprint 'x'\n", "b/n.py": "import scipy\n"}), "b") == {
        "scipy": "b/n.py:1"
    }


def test_a_file_nested_without_end_imports_nothing(tree_of):
    # the parser says MemoryError of the one, RecursionError of the other
    for source in ("-" * 100_000 + "1", "a." * 100_000 + "b"):
        assert imports_below(tree_of({"b/m.py": source, "b/n.py": "import scipy\n"}), "b") == {"scipy": "b/n.py:1"}


def test_names_unlike_their_project_are_known_and_others_kept():
    assert projects_of("sklearn") == ("scikit-learn", "sklearn")
    assert projects_of("cv2")[:2] == ("opencv-python-headless", "opencv-python")
    assert projects_of("My_Thing") == ("my-thing",)
