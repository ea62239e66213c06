from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import openai
import pytest

from sandbox.model.app import MODEL, app
from sandbox.model.faults import Fault, ModelFaults
from sandbox.server import serving

ASKED = [{"role": "user", "content": "<title>\nCache it\n</title>\n<body>\n</body>\n<patch>\n</patch>"}]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(app()) as url:
        yield url


def test_the_openai_client_gets_a_deterministic_rule_based_answer(url: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="any") as client:
        first, second = (client.chat.completions.create(model=MODEL, messages=ASKED) for _ in range(2))
        assert [model.id for model in client.models.list()] == [MODEL]
    assert first.system_fingerprint == "sandbox-rules"
    assert first.choices[0].message.content == second.choices[0].message.content
    answer = json.loads(first.choices[0].message.content or "")
    assert answer["is_performance"] is True
    assert answer["reason"].startswith("sandbox rule: ")
    assert first.usage is not None
    assert first.usage.prompt_tokens == len(ASKED[0]["content"]) // 4


def test_a_question_without_tags_is_read_as_title_and_body(url: str) -> None:
    answer = httpx.post(
        f"{url}/v1/chat/completions",
        headers={"Authorization": "Bearer any"},
        json={"model": MODEL, "messages": [{"role": "user", "content": [{"type": "text", "text": "Dev\nfaster"}]}]},
    ).json()
    assert json.loads(answer["choices"][0]["message"]["content"])["is_performance"] is True


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"model": "gpt-0"}, 404),
        ({"stream": True}, 400),
        ({"messages": None}, 400),
        ({"messages": [{"role": "user"}]}, 400),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"properties": {}}}}}, 400),
    ],
)
def test_what_it_cannot_do_it_refuses(url: str, change: dict[str, object], status: int) -> None:
    question = {"model": MODEL, "messages": ASKED, **change}
    answer = httpx.post(f"{url}/v1/chat/completions", headers={"Authorization": "Bearer any"}, json=question)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_a_key_is_asked_for_and_checked() -> None:
    with serving(app(api_key="right")) as url:
        assert httpx.get(f"{url}/v1/models").status_code == 401
        assert httpx.get(f"{url}/v1/models", headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert httpx.get(f"{url}/v1/models", headers={"Authorization": "Bearer right"}).status_code == 200


def test_faults_come_at_their_call_and_are_booked() -> None:
    faults = ModelFaults(by_call={1: Fault.RATE_LIMITED, 3: Fault.SERVER_ERROR}, retry_after_seconds=0.5)
    with serving(app(faults)) as url:
        answers = [
            httpx.post(
                f"{url}/v1/chat/completions",
                headers={"Authorization": "Bearer any"},
                json={"model": MODEL, "messages": ASKED},
            )
            for _ in range(4)
        ]
        booked = httpx.get(f"{url}/_sandbox/calls").json()
    assert [answer.status_code for answer in answers] == [429, 200, 500, 200]
    assert answers[0].headers["Retry-After"] == "0.5"
    assert booked["chat_completions"] == 4
    assert booked["answered"] == 2
    assert booked["faults"] == {"rate_limited": 1, "server_error": 1}
    assert booked["tokens_in"] == 2 * (len(ASKED[0]["content"]) // 4)
