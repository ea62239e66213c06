from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletion

from formulacode_dagster.selection.classification.replies import Reply, reply_of

OBJECT = '{"total": 4}'


def reply(finish: str = "stop", **message: Any) -> Reply:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": None, **message}}
    completion = ChatCompletion.construct(choices=[choice], usage=None)
    return reply_of(ChatCompletion.construct(**completion.model_dump(warnings=False)), str.strip)


@pytest.mark.parametrize(
    "message",
    [
        {"content": OBJECT},
        {"content": f"<think>{{}}</think>\n{OBJECT}"},
        {"content": f"it is {{}}\n</think>{OBJECT}"},
        {"content": f"```json\n{OBJECT}\n```"},
        {"content": f"Here you are:\n```\n{OBJECT}\n```\nBye"},
        {"content": f"```json {OBJECT}```"},
        {"content": f"```json\n{OBJECT}"},
        {"content": f"Sure! {OBJECT}\n\nI took {{}} for {{it}}."},
        {"content": f"{OBJECT}\nHope this helps."},
        {"content": f"<think>a {{}}</think>\n```json\n{OBJECT}\n```"},
        {"content": f"<think>```\n{{}}\n```</think>```json\n{OBJECT}\n```"},
        {"content": [{"type": "thinking", "thinking": "so"}, {"type": "text", "text": OBJECT}]},
        {"reasoning": OBJECT},
        {"content": "", "reasoning_content": f"\n{OBJECT}\n"},
        {"reasoning": "thoughts", "reasoning_content": OBJECT},
        {"content": "<think>so</think>", "reasoning": OBJECT},
    ],
)
def test_the_answer_is_found_where_servers_put_it(message: dict[str, Any]) -> None:
    assert reply(**message).content == OBJECT


@pytest.mark.parametrize(
    "message",
    [
        {"content": None},
        {"content": f"<think>so far {OBJECT}"},
        {"reasoning": f"So it is {OBJECT}"},
        {"reasoning": "[1]"},
        {"reasoning_content": OBJECT + OBJECT},
    ],
)
def test_what_is_no_answer_is_empty(message: dict[str, Any]) -> None:
    assert reply(**message).content == ""


def test_a_fence_inside_of_an_object_is_a_part_of_it() -> None:
    text = '{"reason": "```py\\nx\\n```\\n"}'
    assert reply(content=text).content == text


@pytest.mark.parametrize("tag", ["<think>", "</think>", "<think>so</think>"])
def test_a_tag_inside_of_an_object_is_a_part_of_it(tag: str) -> None:
    text = f'{{"reason": "it strips {tag} and more"}}'
    assert reply(content=text).content == text


def test_an_object_too_deep_to_read_is_no_error() -> None:
    text = '{"a":' * 100_000
    assert reply(content=text).content == text


def test_two_fences_are_no_answer_by_themselves() -> None:
    text = f"```\n{OBJECT}\n```\nor\n```\n{OBJECT}\n```"
    assert reply(content=text).content == text


def test_a_filtered_answer_is_a_refusal_and_a_cut_one_is_cut() -> None:
    assert reply("content_filter", content="").refusal == "content_filter"
    assert reply("length", content=OBJECT).cut
    assert not reply(content=OBJECT).cut
