"""The variants of a problem statement, written from a view by a template: the same view gives the same text."""

from __future__ import annotations

from .templates import render
from .view import WriterView

TEMPLATE = "problem_statement.md.j2"
TEMPLATE_VERSION = "3"
"""Raise it with any change of the template, of what a view holds, or of what is kept out of the text."""


def write_minimal(view: WriterView) -> str:
    """The goal alone: which repository, and that it is to run faster."""
    return render(TEMPLATE, view.only(()).model_dump())


def write_issue(view: WriterView) -> str | None:
    """The goal, and the symptom as users reported it; None where nobody did."""
    return render(TEMPLATE, view.model_dump()) if view.issues else None
