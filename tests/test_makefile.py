"""`make setup` behind a proxy whose certificate only the system, or SSL_CERT_FILE, knows."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TELL = 'echo "$PIP_CERT $SSL_CERT_FILE $UV_SYSTEM_CERTS $UV_NATIVE_TLS" >> "$HOME/{name}"\n'
TOOLS = ("bash", "cat", "chmod", "env", "mkdir", "mv", "touch")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout next to a `bin` with only tools, and a Python that makes environments of stubs."""
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or tool)
    python = "mkdir -p .venv/bin\nprintf '#!/bin/bash\\n' >.venv/bin/python\nchmod +x .venv/bin/python\n"
    uv = "#!/bin/bash\n" + python + TELL.format(name="uv")
    pip = f"#!/bin/bash\ncat > .uv/bin/uv <<'END'\n{uv}END\nchmod +x .uv/bin/uv\n" + TELL.format(name="pip")
    python = f"#!/bin/bash\nmkdir -p .uv/bin\ncat > .uv/bin/pip <<'OUTER'\n{pip}OUTER\nchmod +x .uv/bin/pip\n"
    for name, text in (("python3", python), ("uv", uv)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "checkout").mkdir()
    for name in ("Makefile", "pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, tmp_path / "checkout" / name)
    return tmp_path


def set_up(folder: Path, **more: str) -> None:
    make = shutil.which("make") or "make"
    environment = {"PATH": str(folder / "bin"), "HOME": str(folder), **more}
    subprocess.run([make, "setup"], cwd=folder / "checkout", env=environment, capture_output=True, check=True)


def told(folder: Path, name: str) -> list[str]:
    return (folder / name).read_text().splitlines()[-1].split(" ")


def test_pip_and_uv_trust_the_system_where_nothing_names_certificates(folder: Path) -> None:
    (folder / "bin" / "uv").unlink()
    set_up(folder)
    bundle, given, *system = told(folder, "pip")
    assert ssl.create_default_context(cafile=bundle).get_ca_certs()
    assert (given, system) == ("", ["true", "true"])
    assert told(folder, "uv") == [bundle, given, *system]


def test_a_uv_that_is_there_is_told_too(folder: Path) -> None:
    set_up(folder)
    assert told(folder, "uv")[2:] == ["true", "true"]
    assert not (folder / "pip").exists()


def test_what_is_named_goes_before_the_system(folder: Path) -> None:
    (folder / "bin" / "uv").unlink()
    set_up(folder, SSL_CERT_FILE="/proxy.pem", UV_NATIVE_TLS="false")
    assert told(folder, "pip") == told(folder, "uv") == ["/proxy.pem", "/proxy.pem", "true", "false"]
    (folder / "checkout" / ".venv" / ".complete").unlink()
    shutil.rmtree(folder / "checkout" / ".uv")
    set_up(folder, SSL_CERT_FILE="/proxy.pem", PIP_CERT="/pip.pem")
    assert told(folder, "pip")[0] == "/pip.pem"
