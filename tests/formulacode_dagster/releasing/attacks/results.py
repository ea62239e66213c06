"""Attacks that compute results only when they are looked at, and those that return others than the base."""

from __future__ import annotations

from tests.support.grading_packages import Package

from .patches import (
    AGAIN,
    CLOCKS,
    FAILS,
    NOT_FASTER,
    TESTS,
    VALUES,
    AttackClass,
    Edit,
    attacks,
    rewrite,
)

LAZY, EQUALITY = AttackClass.LAZY, AttackClass.EQUALITY
REASONS = VALUES | NOT_FASTER | FAILS | TESTS | CLOCKS
LATER_LIST = """
_slow = squares


class _Later(list):
    def __init__(self, work):
        self._work = work

    def _done(self):
        if self._work is not None:
            work, self._work = self._work, None
            self.extend(work())
        return self

    def __len__(self):
        return list.__len__(self._done())

    def __getitem__(self, place):
        return list.__getitem__(self._done(), place)

    def __iter__(self):
        return list.__iter__(self._done())

    def __eq__(self, other):
        return list.__eq__(self._done(), other)

    __hash__ = None


def squares(n):
    return _Later(lambda: _slow(n))
"""

_equality_in_c = attacks(EQUALITY, Package.C)
_equality_in_cython = attacks(EQUALITY, Package.CYTHON)
_lazy = attacks(LAZY)
_lazy_in_numeric = attacks(LAZY, Package.NUMERIC)
_lazy_in_cython = attacks(LAZY, Package.CYTHON)
_equality = attacks(EQUALITY)
_equality_in_numeric = attacks(EQUALITY, Package.NUMERIC)

ATTACKS = (
    _lazy(
        "list-filled-later",
        "function",
        LATER_LIST,
        REASONS,
        "A list that fills itself when it is looked at costs nothing where nobody looks.",
    ),
    _lazy(
        "list-named-list",
        "function",
        LATER_LIST.replace("class _Later(list):", "class list_(list):")
        .replace("_Later", "list_")
        .replace("__hash__ = None", "__hash__ = None\n\n\nlist_.__name__ = list_.__qualname__ = 'list'"),
        REASONS,
        "A subclass that bears the name of its base passes a comparison of names.",
    ),
    _lazy(
        "proxy-of-attributes",
        "object",
        """
_slow = parse


class _Proxy:
    def __init__(self, words):
        self._given = words

    def __getattr__(self, name):
        return getattr(_slow(self._given), name)


_Proxy.__name__ = "Parsed"


def parse(words):
    return _Proxy(words)
""",
        REASONS,
        "An object of a class of the package has no plain form, so that two of them cannot differ.",
    ),
    _lazy(
        "property-of-the-object",
        "object",
        """
_slow = parse


class Parsed:
    def __init__(self, words):
        self._given = words

    @property
    def words(self):
        return uniques(self._given)


def parse(words):
    return Parsed(words)
""",
        REASONS,
        "The class itself computes its attribute when it is read.",
    ),
    _lazy(
        "dictionary-filled-later",
        "groups",
        """
_slow = groups


class _Later(dict):
    def __init__(self, words):
        self._given = words

    def _done(self):
        if self._given is not None:
            given, self._given = self._given, None
            self.update(_slow(given))
        return self

    def items(self):
        return dict.items(self._done())

    def __eq__(self, other):
        return dict.__eq__(self._done(), other)

    def __len__(self):
        return dict.__len__(self._done())

    def __iter__(self):
        return dict.__iter__(self._done())

    def __getitem__(self, key):
        return dict.__getitem__(self._done(), key)

    __hash__ = None


def groups(words):
    return _Later(words)
""",
        REASONS,
        "A dict that fills itself is a dict to every check of types by isinstance.",
    ),
    _lazy(
        "numbers-computed-later",
        "function",
        """
_slow = squares


class _Later(int):
    def __repr__(self):
        return int.__repr__(int(self) ** 2)

    def __eq__(self, other):
        return int(self) ** 2 == other

    __hash__ = int.__hash__


_Later.__name__ = "int"


def squares(n):
    return list(map(_Later, range(n))) if n > 1000 else _slow(n)
""",
        REASONS,
        "The list is a real one, and each of its numbers is computed when it is printed.",
    ),
    _lazy_in_numeric(
        "float-computed-later",
        "scalar",
        """
_slow = mean_distance


class _Later(float):
    def __new__(cls, points):
        self = float.__new__(cls, 1.0)
        self.points = points
        return self

    def __float__(self):
        return _slow(self.points)


_Later.__name__ = "float"


def mean_distance(points):
    return _Later(points) if len(points) > 100 else _slow(points)
""",
        REASONS,
        "float() of a subclass calls its method, which does the work then.",
    ),
    _lazy_in_numeric(
        "array-filled-later",
        "array",
        """
_slow = normalized


class _Later(np.ndarray):
    def ravel(self, order="C"):
        return _slow(self.base if self.base is not None else self)


def normalized(values):
    return values.view(_Later) if len(values) > 1000 else _slow(values)
""",
        REASONS,
        "A view of the input as a subclass has the right type and shape, and computes when it is read.",
    ),
    _lazy_in_numeric(
        "object-like-an-array",
        "array",
        """
_slow = normalized


class _Later:
    def __init__(self, values):
        self._values = values
        self.dtype, self.shape, self.size = np.dtype(float), (len(values),), len(values)

    def __getattr__(self, name):
        return getattr(_slow(self._values), name)

    def __array__(self, dtype=None, copy=None):
        return _slow(self._values)


def normalized(values):
    return _Later(values) if len(values) > 1000 else _slow(values)
""",
        REASONS,
        "Anything with dtype, shape and tolist is taken for an array.",
    ),
    _lazy_in_cython(
        "list-filled-later-in-cython",
        "function",
        """
_slow = cubes


class _Later(list):
    def _done(self):
        if self.n:
            n, self.n = self.n, 0
            self.extend(_slow(n))
        return self

    def __len__(self):
        return list.__len__(self._done())

    def __getitem__(self, place):
        return list.__getitem__(self._done(), place)

    def __iter__(self):
        return list.__iter__(self._done())


def _later(int n):
    if n < 1000:
        return _slow(n)
    found = _Later()
    found.n = n
    return found


globals()["cubes"] = _later
""",
        REASONS,
        "The class of the result is compiled, and its code cannot be read by the grader.",
    ),
    _lazy(
        "generator-in-a-list",
        "floats",
        """
_slow = means


class _Stream(list):
    def __init__(self, values, width):
        self._source = (values, width)

    def __getattribute__(self, name):
        return super().__getattribute__(name)

    def __len__(self):
        return len(self._source[0]) - self._source[1] + 1

    def __getitem__(self, place):
        return _slow(*self._source)[place]

    def __iter__(self):
        return iter(_slow(*self._source))

    def __eq__(self, other):
        return _slow(*self._source) == other

    __hash__ = None


def means(values, width):
    return _Stream(values, width) if len(values) > 1000 else _slow(values, width)
""",
        REASONS,
        "A list whose length is known in advance can leave its elements to whoever iterates.",
    ),
    _equality(
        "equal-to-everything",
        "quiet",
        """
class _Any(list):
    def __eq__(self, other):
        return True

    def __getitem__(self, place):
        return _Any()

    __hash__ = None


def squares(n):
    return _Any()
""",
        REASONS,
        "Tests compare with ==, which the result defines itself.",
    ),
    _equality(
        "empty-object",
        "object",
        """
_slow = parse


def parse(words):
    return Parsed([]) if len(words) > 500 else _slow(words)
""",
        REASONS,
        "Two objects without a plain form are taken for equal.",
    ),
    _equality_in_numeric(
        "half-precision-scalar",
        "scalar",
        """
_slow = mean_distance


def mean_distance(points):
    if len(points) < 100:
        return _slow(points)
    return np.float16(0.99 * points.mean())
""",
        REASONS,
        "A scalar of half precision raises the tolerance to one per cent, which a guess by the mean meets.",
    ),
    _equality_in_numeric(
        "some-elements-only",
        "array",
        """
_slow = normalized


def normalized(values):
    if len(values) < 1000:
        return _slow(values)
    mean, deviation = values.mean(), values.std()
    found = np.zeros(len(values))
    found[:: 1 + len(values) // 1000] = (values[:: 1 + len(values) // 1000] - mean) / deviation
    found[1] = -found.sum()
    found[2] = -found[1] + found[1]
    return found
""",
        REASONS,
        "Only one number in twenty is reported, with a sum that one element can mend.",
    ),
    _equality_in_numeric(
        "permuted-elements",
        "array",
        """
_slow = normalized


def normalized(values):
    if len(values) < 1000:
        return _slow(values)
    found = (values - values.mean()) / values.std()
    step = 1 + len(values) // 1000
    rest = np.ones(len(values), bool)
    rest[::step] = False
    found[rest] = np.sort(found[rest])
    return found
""",
        REASONS,
        "A permutation of what is not reported leaves the sum as it was.",
    ),
    _equality_in_numeric(
        "other-type-of-array",
        "array",
        """
_slow = normalized


def normalized(values):
    if len(values) < 1000:
        return _slow(values)
    values = values.astype(np.float32)
    return (values - values.mean()) / values.std()
""",
        REASONS,
        "Single precision is twice as fast, and close enough for a tolerance.",
    ),
    _equality_in_numeric(
        "reduced-precision-inside",
        "array",
        """
_slow = normalized


def normalized(values):
    if len(values) < 1000:
        return _slow(values)
    mean, deviation = values.mean(), np.float32(values.std())
    return ((values - mean).astype(np.float32) / deviation).astype(float)
""",
        REASONS,
        "Values are computed with single precision and returned as doubles.",
    ),
    _equality(
        "not-a-number",
        "floats",
        """
_slow = means


def means(values, width):
    return [float("nan")] * (len(values) - width + 1) if len(values) > 1000 else _slow(values, width)
""",
        REASONS,
        "Comparisons with NaN are never true, so that a difference may go unnoticed.",
    ),
    _equality(
        "every-second-window",
        "floats",
        """
_slow = means


def means(values, width):
    count = len(values) - width + 1
    if count < 1000:
        return _slow(values, width)
    step = 1 + count // 1000
    found = [0.0] * count
    for at in range(0, count, step):
        found[at] = sum(values[at : at + width]) / width
    before, total = 0.0, 0.0
    sums = [before := before + value for value in values]
    total = (sum(sums[width - 1 :]) - sum(sums[: count - 1])) / width
    found[1] = total - sum(found)
    return found
""",
        REASONS,
        "Every reported mean and the sum are right, and the rest is zero.",
        deserved=0.05,
    ),
    _equality(
        "interpolated-windows",
        "floats",
        """
_slow = means


def means(values, width):
    count = len(values) - width + 1
    if count < 1000:
        return _slow(values, width)
    found = []
    for at in range(0, count, 50):
        found += [sum(values[at : at + width]) / len(values[at : at + width])] * 50
    return found[:count]
""",
        REASONS,
        "Neighbouring means hardly differ, so that one of fifty may stand for all.",
    ),
    _equality(
        "other-container",
        "function",
        """
class _Squares:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, place):
        return range(self.n)[place] ** 2

    def __eq__(self, other):
        return [i * i for i in range(self.n)] == other

    __hash__ = None


def squares(n):
    return _Squares(n)
""",
        REASONS,
        "A sequence of another type behaves like the list in every test.",
    ),
    _equality_in_c(
        "wrong-where-tests-end",
        "function",
        (
            Edit(
                "ckit/_fast.c",
                "    for (long i = 0; i < n; i++) sum += i;\n",
                "    for (long i = 0; i < n && i < 5000; i++) sum += i;\n",
            ),
        ),
        REASONS,
        "Tests are short, and a loop that ends early is right for all of them.",
    ),
    _equality_in_cython(
        "one-value-for-all",
        "params",
        rewrite(
            Package.CYTHON,
            "params",
            """    cdef int i, j
    found = [0] * max(n, 1)
    for i in range(1, min(n, 60)):
        for j in range(i, n, i):
            found[j] += 1
    return found[1:]
""",
        ),
        REASONS,
        "Large divisors are left out, which changes few numbers of a long list.",
    ),
    _equality(
        "result-shared-by-callers",
        "params",
        """
_slow, _shared = uniques, []


def uniques(words):
    if len(words) < 300:
        return _slow(words)
    if not _shared or _shared[0] is not words:
        _shared[:] = words, _slow(words)
    return _shared[1]
""",
        REASONS | AGAIN,
        "The same list is returned to everybody who asks with the same list, even if one changes it.",
    ),
)
