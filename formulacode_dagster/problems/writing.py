"""The variants of a problem statement, written from a view by a template: the same view gives the same text."""

from __future__ import annotations

from .templates import render
from .view import WriterView

TEMPLATE = "problem_statement.md.j2"
TEMPLATE_VERSION = "4"
"""Raise it with any change of the template, of what a view holds, or of what is kept out of the text."""


def write_minimal(view: WriterView) -> str:
    """The goal alone: which repository, and that it is to run faster."""
    return _rendered(view.only(()))


def write_issue(view: WriterView) -> str | None:
    """The goal, and the symptom as users reported it; None where nobody did."""
    return _rendered(view) if view.issues else None


def with_report(view: WriterView, report: str) -> str:
    """The goal, and the symptom in the words of *report*."""
    return _rendered(view.only(()), report.strip())


def _rendered(view: WriterView, report: str = "") -> str:
    return render(TEMPLATE, {**view.model_dump(), "report": report})
