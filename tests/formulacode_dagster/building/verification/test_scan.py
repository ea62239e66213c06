from __future__ import annotations

import io
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.files import Area, ImageFile
from formulacode_dagster.building.verification.facts import gather_facts
from formulacode_dagster.building.verification.scan import SearchPatterns, Secret, forms_in, own_secrets, telling_lines

TOKEN = "ghp_" + "a1B2" * 9
KEY = "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n"


def file(area: Area, path: str, content: bytes, uid: int = 0) -> ImageFile:
    return ImageFile(area, path, uid, None, len(content), lambda: io.BytesIO(content))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (f"x = {TOKEN}", "a GitHub token"),
        ("github_pat_" + "a1" * 20, "a GitHub token"),
        ("hf_" + "aB" * 17, "a Hugging Face token"),
        ("sk-proj-" + "aB1" * 15, "a key of a model's endpoint"),
        ("AKIA" + "ABCD" * 4, "an AWS key"),
        ("dckr_pat_" + "a1B2" * 7, "a Docker Hub token"),
        ("pypi-AgE" + "a1B2" * 10, "a token of a package index"),
        (KEY, "a private key"),
        ("index-url = https://user:pass@index.example.org/simple", "an address with a password"),
    ],
)
def test_a_credential_is_known_by_its_form(text: str, what: str) -> None:
    assert forms_in(text.encode()) == [what]


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn-contrib",
        "task-0123456789abcdef",
        "https://user:{password}@host",
        "hf_hub_download",
        "ghp_short",
        "http://a:80",
        "distributed/worker.py,sha256=f3-sk-0sVbkCqzqfJ2mXkq2wGmZr6l7Fs1Hq9K1Lr4g,12345",
    ],
)
def test_what_only_looks_a_little_like_one_is_none(text: str) -> None:
    assert forms_in(text.encode()) == []


def test_secrets_are_known_by_their_variables_and_never_shown() -> None:
    found = own_secrets(
        {
            "GH_TOKENS": "first-token,second-token",
            "HF_TOKEN_PATH": "/home/me/token-of-the-hub",
            "FC_DATABASE_URL": "postgresql://me:very%20secret@db/x",
            "LLM_MAX_TOKENS": "2048000000",
            "API_KEY": "short",
            "PASSWORD_STORE_DIR": "/home/me/.password-store",
            "FC_DAGSTER_DATABASE_URL": "postgresql://postgres:postgres@db/dagster",
            "PATH": "/usr/bin:/usr/local/bin",
        }
    )
    assert {(credential.name, credential.value) for credential in found} == {
        ("GH_TOKENS", b"first-token"),
        ("GH_TOKENS", b"second-token"),
        ("FC_DATABASE_URL", b"very%20secret"),
        ("FC_DATABASE_URL", b"very secret"),
    }
    assert "secret" not in repr(found).replace("Secret(", "")


def test_a_value_is_found_anywhere_and_a_form_only_in_our_files(tmp_path: Path) -> None:
    secret = Secret("GH_TOKENS", b"value-of-ours")
    both = b"value-of-ours " + TOKEN.encode()
    places = {
        (Area.REPOSITORY, "tests/data.txt"): 1,
        (Area.REPOSITORY, ".git/config"): 2,
        (Area.ENVIRONMENT, "lib/python3.11/site-packages/boto/example.py"): 1,
        (Area.ENVIRONMENT, "lib/python3.11/site-packages/a-1.dist-info/direct_url.json"): 2,
        (Area.TOOLS, "task/build.env"): 2,
        (Area.TOOLS, "tests/tornado/test/test.key"): 1,
        (Area.TOOLS, "tests/a-1.dist-info/direct_url.json"): 2,
        (Area.TOOLS, "crates/vendor/url-2.5.0/tests/urltestdata.json"): 1,
        (Area.SYSTEM, "etc/pip.conf"): 2,
        (Area.SYSTEM, "root/.netrc"): 2,
        (Area.SYSTEM, "home/formulacode/.netrc"): 2,
    }
    files = [file(area, path, both) for area, path in places] + [file(Area.SYSTEM, "usr/share/doc/x", both)]
    facts = gather_facts(files, objects=tmp_path, watch=SearchPatterns((secret,)))
    assert {key: len(found) for key, found in facts.scan.credentials.items()} == places
    assert all("value-of-ours" not in word for words in facts.scan.credentials.values() for word in words)


def test_a_file_that_the_build_wrote_into_the_system_is_looked_through(tmp_path: Path) -> None:
    facts = gather_facts([file(Area.SYSTEM, "usr/share/doc/x", KEY.encode(), uid=1000)], objects=tmp_path)
    assert facts.scan.credentials == {(Area.SYSTEM, "usr/share/doc/x"): ["a private key"]}


def test_files_of_the_builds_user_are_facts_wherever_they_are(tmp_path: Path) -> None:
    paths = ("opt/build/bin/python", "usr/lib/x.so", "var/mail/formulacode")
    files = [file(Area.SYSTEM, path, b"", uid=uid) for uid in (0, 1000) for path in paths]
    assert gather_facts(files[:3], objects=tmp_path).files[Area.SYSTEM] == {}
    assert gather_facts(files[3:], objects=tmp_path).files[Area.SYSTEM].keys() == set(paths[:2])


def test_lines_that_stand_in_any_code_tell_nothing() -> None:
    told = telling_lines([b"    return cached_neighbours(graph, node)\r", b"    return result", b"}" * 30, b""])
    assert told == {b"return cached_neighbours(graph, node)"}
