"""The sandbox's rule for writing benchmarks: call the first public function in the prompt.

An argument called `n`, `size`, `count` or `length` is the size itself, any other a list of that many numbers. It cannot
call methods and private functions: then its module holds no benchmark, and says so.
"""

from __future__ import annotations

import json
import re

_FUNCTIONS = re.compile(r"<functions[-\w]*>\s*(.*?)\s*</functions", re.DOTALL)
_SIZES = frozenset({"n", "size", "count", "length"})


def write_benchmark(text: str) -> str:
    """The module for the functions named in *text*, as the JSON object that was asked for."""
    match = _FUNCTIONS.search(text)
    functions = json.loads(match[1]) if match else []
    plain = [each for each in functions if re.fullmatch(r"[A-Za-z]\w*", each["name"])]
    if not plain:
        return json.dumps({"code": "# The sandbox calls public functions alone.\n"})
    module, name = plain[0]["module"], plain[0]["name"]
    given = ", ".join("size" if each in _SIZES else "list(range(size))" for each in plain[0]["arguments"])
    lines = [
        f"import {module}",
        "",
        "",
        "class Written:",
        "    params = [1000, 30000]",
        '    param_names = ["size"]',
        "",
        "    def setup(self, size):",
        f"        self.arguments = ({given}{',' if given else ''})",
        "",
        f"    def time_{name}(self, size):",
        f"        return {module}.{name}(*self.arguments)",
        "",
    ]
    return json.dumps({"code": "\n".join(lines)})
