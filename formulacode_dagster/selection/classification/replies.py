"""An endpoint's reply, as one text that may be the answer: servers differ in place and wrapping."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_MOST_STARTS = 50
"""Braces at which an object is looked for between words."""
_REASONING = ("reasoning", "reasoning_content")
_CONTENT_FILTER = "content_filter"


@dataclass(frozen=True)
class Reply:
    """A reply: text, or a refusal; whether it was cut at the token limit; usage."""

    content: str = ""
    refusal: str = ""
    cut: bool = False
    tokens_in: int = 0
    tokens_out: int = 0


def reply_of(completion: object, clean: Callable[[str], str]) -> Reply:
    """Convert *completion* from the client, which validates nothing: any JSON, or HTML, of a gateway arrives here.

    The answer is the arguments of a called function, else the content without thoughts and code fences, or the only
    object in it, else, without content, a reasoning field that is exactly one JSON object. Anything that is not a
    completion is quoted, made *clean*.
    """
    choices: Any = getattr(completion, "choices", None)
    message = getattr(choices[0], "message", None) if choices else None
    usage = getattr(completion, "usage", None)
    tokens_in, tokens_out = (getattr(usage, name, None) or 0 for name in ("prompt_tokens", "completion_tokens"))
    if message is None:
        return Reply(clean(f"not a completion: {completion}"), tokens_in=tokens_in, tokens_out=tokens_out)
    finish = str(getattr(choices[0], "finish_reason", "") or "")
    refusal = str(getattr(message, "refusal", None) or "")
    return Reply(
        content=_answer(message),
        refusal=refusal or (_CONTENT_FILTER if finish == _CONTENT_FILTER else ""),
        cut=finish == "length",
        tokens_in=tokens_in,
        tokens_out=tokens_out,
    )


def _answer(message: Any) -> str:
    for call in getattr(message, "tool_calls", None) or ():
        arguments = getattr(getattr(call, "function", None), "arguments", None)
        if arguments:
            return str(arguments)
    content = _bare(_text(getattr(message, "content", None)))
    if content:
        # thoughts may quote the form of an answer, so in those no object is looked for
        found = [] if _is_object(content) else _objects_in(content)
        return found[0] if len(found) == 1 else content
    reasoned = (_bare(_text(getattr(message, name, None))) for name in _REASONING)
    return next((text for text in reasoned if _is_object(text)), "")


def _text(content: object) -> str:
    """Return the text of a string, or of the text parts of a list."""
    if isinstance(content, list):
        parts = [part if isinstance(part, dict) else getattr(part, "__dict__", {}) for part in content]
        return "".join(str(part.get("text") or "") for part in parts if part.get("type") == "text")
    return str(content or "")


def _bare(text: str) -> str:
    """Return *text* without thoughts; of a text with one code fence, its content. An unclosed thought hides all after
    it.
    """
    if _is_object(text):
        # tags in its texts are part of it
        return text.strip()
    text = _without_thoughts(text).strip()
    if text.startswith("{"):
        return text
    fenced = _FENCED.findall(text)
    return str(fenced[0]).strip() if len(fenced) == 1 else text


def _without_thoughts(text: str) -> str:
    """Return *text* without what stands between the tags of a model's thoughts."""
    *closed, last = text.split("</think>")
    # a template may put the opening tag into the prompt, so that only the closing one is returned
    kept = (part.partition("<think>")[0] for part in closed if "<think>" in part)
    return "".join((*kept, last.partition("<think>")[0]))


def _objects_in(text: str) -> list[str]:
    """Return the outermost JSON objects that stand in *text*, filled ones, between whatever else."""
    decoder = json.JSONDecoder()
    found: list[str] = []
    at = 0
    for _ in range(_MOST_STARTS):
        if (at := text.find("{", at)) < 0:
            break
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        if value:
            found.append(text[at:end])
        at = end
    return found


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
