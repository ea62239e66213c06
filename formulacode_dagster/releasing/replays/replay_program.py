"""The file `replay` of an archive: a shell script that finds an interpreter, and the program as an archive after it."""

from __future__ import annotations

from importlib import resources

from formulacode_dagster.building.suites.archive import zipapp_of

PACKAGE = "formulacode_replay"
PORTABLE = "formulacode_dagster.releasing.replays.portable"
ENGINES = "formulacode_dagster.building.engines"
SCRIPTS = {
    "confine.py": (ENGINES, "confine.py"),
    "plain_mounts.py": (ENGINES, "view_mounts.py"),
    "view_mounts.py": (PORTABLE, "rootfs_view.py"),
}
"""Scripts that run by themselves, by their names on the other machine: module and file of each."""
HEADER = b"""#!/bin/sh
# Measures the tasks next to this file; see ./replay --help. The rest of it is an archive of Python modules.
for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python3.9; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
        exec "$python" -I "$0" "$@"
    fi
done
echo "refused: ./replay needs Python 3.9 or later on PATH" >&2
exit 2
"""
START = f"""
import sys
import zipfile

from {PACKAGE}.command import main


def script(name):
    with zipfile.ZipFile(sys.argv[0]) as archive:
        return archive.read(f"scripts/{{name}}")


sys.exit(main(sys.argv[1:], sys.argv[0], script))
"""


def replay_program() -> bytes:
    """The program; equal sources give equal bytes."""
    folder = resources.files(PORTABLE)
    modules = sorted((file.name, file.read_bytes()) for file in folder.iterdir() if file.name.endswith(".py"))
    contents = {f"{PACKAGE}/{name}": content for name, content in modules}
    contents |= {
        f"scripts/{name}": resources.files(module).joinpath(file).read_bytes()
        for name, (module, file) in SCRIPTS.items()
    }
    # the program reads the names of a system's folders there
    contents["plain_mounts.py"] = contents["scripts/plain_mounts.py"]
    return zipapp_of({"__main__.py": START.encode(), **contents}, HEADER)
