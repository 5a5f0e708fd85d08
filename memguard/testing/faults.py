"""Faults of a model server, by name: what real providers answer on a bad day.

`FaultInjector` puts one of them among the answers of a `LoopbackModelServer`.
"""

import random
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias, cast

from memguard.testing.replies import ServerReply, text_of_request

FaultName: TypeAlias = Literal[
    "rate_limit",
    "rate_limit_wait",
    "rate_limit_hour",
    "quota",
    "unauthorized",
    "server_error",
    "timeout",
    "slow_drip",
    "dropped",
    "cut_body",
    "half_json",
    "html_page",
    "bad_gateway",
    "wrong_type",
    "redirect",
    "no_choices",
    "empty_answer",
    "half_answer",
    "broken_answer",
    "content_filter",
    "filter_error",
    "refusal",
    "wrong_language",
    "tool_call",
    "no_logprobs",
]
"""The name of a fault; `FAULTS` says what each sends."""

Fault: TypeAlias = "ServerReply | Callable[[ServerReply], ServerReply]"
"""A reply in place of the right one, or a change of the right one."""

_HTML = "<html><body><h1>Sign in</h1></body></html>"
_TOO_MANY = "Rate limit reached."
# No answer to any question: neither a number nor a name of an option.
_OTHER_LANGUAGE = (
    "\u5f88\u62b1\u6b49\uff0c\u8fd9\u91cc\u53ea\u80fd\u7528\u4e2d\u6587\u804a\u5929\u3002"
)
_TOOL_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Porto"}'},
}


def _halved(reply: ServerReply) -> ServerReply:
    text = reply.text or ""
    return replace(reply, text=text[: len(text) // 2], tokens=None)


FAULTS: Mapping[FaultName, Fault] = {
    "rate_limit": ServerReply.error(429, _TOO_MANY, code="rate_limit_exceeded"),
    "rate_limit_wait": ServerReply.error(
        429, _TOO_MANY, code="rate_limit_exceeded", headers={"retry-after": "0.01"}
    ),
    "rate_limit_hour": ServerReply.error(
        429, _TOO_MANY, code="rate_limit_exceeded", headers={"retry-after": "3600"}
    ),
    "quota": ServerReply.error(429, "You exceeded your current quota.", code="insufficient_quota"),
    "unauthorized": ServerReply.error(401, "Incorrect API key.", code="invalid_api_key"),
    "server_error": ServerReply.error(500, "The server had an error."),
    "timeout": ServerReply(raw="{}", latency=3_600.0),
    "slow_drip": lambda reply: replace(reply, drip=0.1),
    "dropped": ServerReply(drops=True),
    "cut_body": lambda reply: replace(reply, cut_after=0.5),
    "half_json": ServerReply(raw='{"id": "c", "choices": [{"index": 0, "mess'),
    "html_page": ServerReply(raw=_HTML, content_type="text/html"),
    "bad_gateway": ServerReply(raw=_HTML, content_type="text/html", status=502),
    "wrong_type": lambda reply: replace(reply, content_type="text/plain"),
    "redirect": ServerReply(raw="", status=307, headers={"location": "/v1/chat/completions"}),
    "no_choices": ServerReply.of_json({"id": "c", "object": "chat.completion", "choices": []}),
    "empty_answer": ServerReply(text=""),
    "half_answer": lambda reply: replace(_halved(reply), finish_reason="length"),
    "broken_answer": _halved,
    "content_filter": ServerReply(text="", finish_reason="content_filter"),
    "filter_error": ServerReply.error(400, "The prompt was filtered.", code="content_filter"),
    "refusal": ServerReply(text=None, refusal="I can't help with that."),
    "wrong_language": ServerReply(text=_OTHER_LANGUAGE),
    "tool_call": ServerReply(text=None, tool_calls=[_TOOL_CALL], finish_reason="tool_calls"),
    "no_logprobs": lambda reply: replace(reply, tokens=()),
}
"""What each fault sends.

* `rate_limit`: 429. `rate_limit_wait` asks to wait for 10 ms, `rate_limit_hour` for an hour.
* `quota`: 429, because the account has no quota left. `unauthorized`: 401.
* `server_error`: 500. `bad_gateway`: 502 with a web page.
* `timeout`: nothing for an hour. `slow_drip`: the right reply, one byte each 0.1 s.
* `dropped`: the connection is closed without a reply. `cut_body`: closed in the middle of it.
* `half_json`, `html_page`: 200 with a body that is no completion.
* `wrong_type`: the right reply as `text/plain`. `redirect`: 307 to the same address.
* `no_choices`: a completion without answers. `empty_answer`: an answer without text.
* `half_answer`: half of the right answer, at the token limit. `broken_answer`: the same half, but
  as if it were complete.
* `content_filter`: an answer that was filtered. `filter_error`: 400, a prompt that was.
* `refusal`: the model declines. `wrong_language`: a sentence in Chinese that answers nothing.
* `tool_call`: a call of a tool that nobody offered. `no_logprobs`: the right answer without any.
"""


class FaultInjector:
    """Answers like another function, with a fault among the answers.

    ```python
    answers = FaultInjector(memory_answer, "rate_limit", when="<memory>", times=2)
    with LoopbackModelServer(answers) as server:
        ...
    assert answers.injected == 2
    ```
    """

    def __init__(
        self,
        answer: Callable[[dict[str, Any]], str | ServerReply],
        fault: FaultName | Fault,
        *,
        when: str = "",
        times: int | None = None,
        share: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Choose the fault, and the requests that it hits.

        Args:
            answer: Gives the right answers.
            fault: The name of a fault, or one of your own.
            when: A regular expression; only requests whose messages match it are hit.
            times: The number of requests that are hit, from the first; `None` sets no limit.
            share: The probability that a matching request is hit.
            seed: Decides which ones are, if `share` is below 1.
        """
        self.injected = 0
        """How many answers were replaced so far."""
        self._answer = answer
        self._fault: Fault = FAULTS[cast("FaultName", fault)] if isinstance(fault, str) else fault
        self._when = re.compile(when, re.DOTALL)
        self._times = times
        self._share = share
        self._random = random.Random(seed)  # noqa: S311 - a repeatable choice, no secret
        # A server answers in its own thread, but the same injector may serve several servers.
        self._lock = threading.Lock()

    def __call__(self, request: dict[str, Any]) -> str | ServerReply:
        """The right answer, or the fault."""
        if not self._hits(request):
            return self._answer(request)
        # A fault that replaces the whole reply needs no right answer, so none is taken from a
        # script.
        if isinstance(self._fault, ServerReply):
            return self._fault
        right = self._answer(request)
        return self._fault(ServerReply(text=right) if isinstance(right, str) else right)

    def _hits(self, request: dict[str, Any]) -> bool:
        if self._when.search(text_of_request(request)) is None:
            return False
        with self._lock:
            used_up = self._times is not None and self.injected >= self._times
            if used_up or self._random.random() >= self._share:
                return False
            self.injected += 1
            return True
