"""Repositories, their commits and files."""

from __future__ import annotations

import base64

from formulacode_dagster.git.command import GitError, git
from formulacode_dagster.git.log import find_commit
from sandbox.github import answers
from sandbox.github.answers import Answer
from sandbox.github.changes import Span, diff_of, files_of, mail_of
from sandbox.github.context import Asked
from sandbox.github.gateway import Incoming

from .finding import find_shelf
from .shapes import commit_json, file_json, full_repository_json

LISTED_FILES = 300
LARGEST_CONTENT = 1024 * 1024


def repository(asked: Asked, incoming: Incoming) -> Answer:
    """`GET /repos/{owner}/{repo}`."""
    return answers.ok(full_repository_json(asked, find_shelf(asked, incoming)))


def commit(asked: Asked, incoming: Incoming) -> Answer:
    """`GET /repos/{owner}/{repo}/commits/{ref}`: JSON, a diff, a patch, or the bare hash."""
    shelf = find_shelf(asked, incoming)
    found = find_commit(shelf.path, incoming.path["ref"])
    if found is None:
        return answers.invalid(f"No commit found for SHA: {incoming.path['ref']}", resource="Commit", of_field="sha")
    span = Span((*found.parents, "")[0], found.sha)
    if "diff" in incoming.accept:
        return answers.text(diff_of(shelf.path, span), incoming.accept)
    if "patch" in incoming.accept:
        return answers.text(mail_of(shelf.path, span), incoming.accept)
    if incoming.accept.endswith(".sha"):
        return answers.text(found.sha.encode(), incoming.accept)
    files = files_of(shelf.path, span)
    additions, deletions = sum(one.additions for one in files), sum(one.deletions for one in files)
    return answers.ok(
        commit_json(asked, shelf, found)
        | {
            "stats": {"total": additions + deletions, "additions": additions, "deletions": deletions},
            "files": [file_json(asked, shelf, found.sha, one) for one in files[:LISTED_FILES]],
        }
    )


def contents(asked: Asked, incoming: Incoming) -> Answer:
    """`GET /repos/{owner}/{repo}/contents/{path}?ref=…`: a file in base64 or raw, or a folder's list."""
    shelf = find_shelf(asked, incoming)
    path, ref = incoming.path["path"].strip("/"), incoming.query.get("ref", "HEAD")
    try:
        found = (
            git(shelf.path, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}:{path}").decode().strip()
        )
        kind = git(shelf.path, "cat-file", "-t", found).decode().strip()
        content = git(shelf.path, "cat-file", "blob", found) if kind == "blob" else b""
        lines = git(shelf.path, "ls-tree", "-l", "-z", found).decode() if kind == "tree" else ""
    except GitError:
        return answers.not_found()
    url = f"{asked.url}/repos/{shelf.name}/contents"
    if kind == "tree":
        entries = []
        for line in filter(None, lines.split("\0")):
            facts, _, name = line.partition("\t")
            _, of, sha, size = facts.split()
            below = f"{path}/{name}".strip("/")
            entries.append(
                {
                    "name": name,
                    "path": below,
                    "sha": sha,
                    "size": int(size) if size.isdigit() else 0,
                    "type": {"blob": "file", "tree": "dir"}.get(of, "file"),
                    "url": f"{url}/{below}?ref={ref}",
                }
            )
        return answers.ok(entries)
    if "raw" in incoming.accept:
        return answers.text(content, incoming.accept)
    large = len(content) > LARGEST_CONTENT
    return answers.ok(
        {
            "name": path.rpartition("/")[2],
            "path": path,
            "sha": found,
            "size": len(content),
            "type": "file",
            "url": f"{url}/{path}?ref={ref}",
            "encoding": "none" if large else "base64",
            "content": "" if large else base64.encodebytes(content).decode(),
        }
    )
