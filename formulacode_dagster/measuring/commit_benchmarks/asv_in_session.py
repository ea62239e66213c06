"""Runs in a session with the image's interpreter: writes asv's files, runs it once, and prints its results.

It imports nothing of this project, and is compatible with CPython 3.8.
"""

import json
import os
import subprocess
import sys
import tempfile
import zipfile


def main() -> None:
    """Take a request from standard input; the one line on standard output is the answer."""
    request = json.load(sys.stdin)
    folder = tempfile.mkdtemp(prefix="fc-asv-")
    with zipfile.ZipFile(request["archive"]) as archive:
        archive.extractall(folder)
    machine = request["machine"]
    home = os.path.join(folder, "home")
    os.mkdir(home)
    _write(os.path.join(home, ".asv-machine.json"), {machine["machine"]: machine, "version": 1})
    results = os.path.join(folder, "results")
    configuration = {**request["configuration"], "results_dir": results, "env_dir": os.path.join(folder, "env")}
    _write(os.path.join(folder, "asv.conf.json"), {**configuration, "html_dir": os.path.join(folder, "html")})
    if request["core"] is not None and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[-1 - request["core"] % len(cores)]})
    environment = dict(
        os.environ,
        HOME=home,
        PYTHONPATH=os.path.join(folder, "asv"),
        # asv gives the benchmarks no other path, and none of its own requirements may replace the image's
        ASV_PYTHONPATH=os.path.join(folder, "runner"),
    )
    command = [sys.executable, "-m", "asv", "run"]
    command += ["--set-commit-hash", request["sha"], "--machine", machine["machine"], *request["arguments"]]
    ended = subprocess.run(command, cwd=folder, env=environment, stdout=sys.stderr, check=False)
    answer = {"status": ended.returncode, "benchmarks": _read(os.path.join(results, "benchmarks.json")), "result": None}
    written = os.path.join(results, machine["machine"])
    for name in sorted(os.listdir(written)) if os.path.isdir(written) else ():
        if name != "machine.json":
            answer["result"] = _read(os.path.join(written, name))
    print(json.dumps(answer))  # noqa: T201 - the answer


def _write(path: str, content: object) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)


def _read(path: str) -> object:
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


if __name__ == "__main__":
    main()
