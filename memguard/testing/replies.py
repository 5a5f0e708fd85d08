"""Replies of the loopback server: chat completions and embeddings in OpenAI's format.

Requests are answered first, then sent as JSON or as events. Equal requests have equal replies.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

_EMBEDDING_SIZE = 64


@dataclass(frozen=True, kw_only=True)
class ServerReply:
    """One answer of a chat completion, or a whole HTTP reply if `status` or `raw` is set."""

    text: str | None = ""
    """The answer's content."""
    finish_reason: str = "stop"
    """`stop`, `length`, `content_filter`, ..."""
    refusal: str | None = None
    """The answer's refusal."""
    tool_calls: Sequence[Mapping[str, Any]] = ()
    """The answer's tool calls, in OpenAI's format."""
    tokens: Sequence[Mapping[str, Any]] | None = None
    """Log-probabilities, as in `logprobs.content`; derived from the words by default."""
    status: int = 200
    """HTTP status; a status other than 200 makes this a whole reply."""
    raw: bytes | str | None = None
    """The HTTP body, unchanged: for example HTML, or half of a JSON document."""
    content_type: str = "application/json"
    """The type of the HTTP body."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Additional HTTP headers, for example `retry-after`."""
    latency: float | None = None
    """Seconds before this reply; the latency of the server by default."""
    drip: float = 0.0
    """Seconds after each byte of the HTTP body; the client receives data all the time."""
    cut_after: float | None = None
    """The share of the HTTP body, in [0, 1), after which the connection is closed."""
    drops: bool = False
    """Whether the connection is closed instead of answering."""

    @classmethod
    def of_json(cls, body: Mapping[str, Any], *, status: int = 200) -> Self:
        """A whole reply with a JSON body."""
        return cls(raw=json.dumps(body), status=status)

    @classmethod
    def error(
        cls,
        status: int,
        message: str = "error",
        *,
        code: str | None = None,
        kind: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Self:
        """A whole reply with an error in OpenAI's format."""
        error = {"message": message, "type": kind or "error", "code": code, "param": param}
        return cls(status=status, raw=json.dumps({"error": error}), headers=headers or {})

    @property
    def is_whole(self) -> bool:
        """Whether this is a whole HTTP reply rather than one of `n` answers."""
        return self.status != 200 or self.raw is not None or self.drops

    def payload(self) -> bytes:
        """The HTTP body."""
        raw = self.raw or b""
        return raw.encode() if isinstance(raw, str) else raw


def refusal_of_setting(name: str) -> ServerReply:
    """The error (HTTP 400) of a model that does not support a setting."""
    message = f"Unsupported parameter: '{name}' is not supported with this model."
    return ServerReply.error(
        400, message, code="unsupported_parameter", kind="invalid_request_error", param=name
    )


def completion(
    body: Mapping[str, Any], answers: Sequence[ServerReply], *, with_logprobs: bool
) -> ServerReply:
    """A chat completion with one choice for each answer; tokens are counted as words."""
    read = sum(_words(message.get("content")) for message in body.get("messages", []))
    written = sum(_words(answer.text) for answer in answers)
    reply = ServerReply.of_json(
        {
            "id": "chatcmpl-loopback",
            "object": "chat.completion",
            "created": 0,  # a time would make equal requests differ
            "model": body.get("model", "m"),
            "choices": [
                _choice(i, answer, with_logprobs=with_logprobs) for i, answer in enumerate(answers)
            ],
            "usage": {
                "prompt_tokens": read,
                "completion_tokens": written,
                "total_tokens": read + written,
            },
        }
    )
    # One HTTP reply has all answers, so the slowest of them decides, and the first says how it is
    # sent.
    latencies = [answer.latency for answer in answers if answer.latency is not None]
    return replace(answers[0], text=None, raw=reply.raw, latency=max(latencies, default=None))


def as_events(completion: ServerReply, *, body: Mapping[str, Any]) -> ServerReply:
    """The same completion as events, one for each word; an error reply is returned unchanged."""
    if completion.status != 200:
        return completion
    whole: dict[str, Any] = json.loads(completion.payload())
    with_usage = bool((body.get("stream_options") or {}).get("include_usage"))
    chunks = [*_chunks(whole), *([_chunk(whole, [], usage=whole["usage"])] if with_usage else [])]
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return replace(
        completion,
        raw="".join([*lines, "data: [DONE]\n\n"]),
        content_type="text/event-stream",
    )


def _choice(index: int, answer: ServerReply, *, with_logprobs: bool) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.refusal is not None:
        message["refusal"] = answer.refusal
    if answer.tool_calls:
        message["tool_calls"] = list(answer.tool_calls)
    tokens = _invented_tokens(answer.text or "") if answer.tokens is None else answer.tokens
    return {
        "index": index,
        "message": message,
        "finish_reason": answer.finish_reason,
        "logprobs": {"content": list(tokens)} if with_logprobs else None,
    }


def _chunks(whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for choice in whole["choices"]:
        message = choice["message"]
        for piece in _pieces(message["content"] or ""):
            yield _chunk(whole, [_delta(choice, {"role": "assistant", "content": piece})])
        calls = [{**call, "index": i} for i, call in enumerate(message.get("tool_calls", []))]
        if calls:
            yield _chunk(whole, [_delta(choice, {"tool_calls": calls})])
        yield _chunk(whole, [{**_delta(choice, {}), "finish_reason": choice["finish_reason"]}])


def _delta(choice: Mapping[str, Any], delta: Mapping[str, Any]) -> dict[str, Any]:
    return {"index": choice["index"], "delta": dict(delta), "finish_reason": None}


def _chunk(
    whole: Mapping[str, Any], choices: list[dict[str, Any]], *, usage: Any = None
) -> dict[str, Any]:
    chunk = {"object": "chat.completion.chunk", "choices": choices, "usage": usage}
    return {**whole, **chunk}


def _invented_tokens(text: str) -> list[dict[str, Any]]:
    names = _pieces(text)
    # exp(-0.1) is about 0.9 and exp(-2.4) about 0.09: a confident model with one alternative.
    return [
        {
            "token": name,
            "logprob": -0.1,
            "bytes": None,
            "top_logprobs": [
                {"token": name, "logprob": -0.1, "bytes": None},
                {"token": _opposite(name), "logprob": -2.4, "bytes": None},
            ],
        }
        for name in names
    ]


def _pieces(text: str) -> list[str]:
    """The words of a text, each with the space before it, as a tokenizer splits them."""
    first, *others = text.split(" ")
    return [first, *(f" {word}" for word in others)]


def _opposite(word: str) -> str:
    return {"yes": "no", "no": "yes", "Yes": "No", "No": "Yes"}.get(word, "…")


def default_answer(request: Mapping[str, Any]) -> str:
    """The smallest object that fits the request's JSON schema; `ok` without one."""
    response_format: Any = request.get("response_format") or {}
    schema = (response_format.get("json_schema") or {}).get("schema")
    if not isinstance(schema, Mapping):
        return "ok"
    return json.dumps(_smallest(schema, schema))


def _smallest(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    # Pydantic describes nested models under `$defs`.
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[-1]
        return _smallest(root.get("$defs", {}).get(name, {}), root)
    if "const" in schema or schema.get("enum"):
        return schema["const"] if "const" in schema else schema["enum"][0]
    if schema.get("anyOf"):
        return _smallest(schema["anyOf"][0], root)
    if schema.get("type") == "object":
        properties: Mapping[str, Any] = schema.get("properties", {})
        return {name: _smallest(inner, root) for name, inner in properties.items()}
    smallest: dict[str, Any] = {"array": [], "boolean": False, "null": None, "string": ""}
    kind = str(schema.get("type"))
    return smallest[kind] if kind in smallest else schema.get("minimum", 0)


_MEMORY_LINE = re.compile(r'^\[(m\d+)\] .*?: ("(?:[^"\\]|\\.)*")$', re.MULTILINE)
_CANDIDATE_LINE = re.compile(r': ("(?:[^"\\]|\\.)*")$', re.MULTILINE)

Relate = Callable[[str, str], str | None]
"""Gives the relation of a new text to a stored one; `None` for `coexists`."""


def relations(
    relate: Mapping[str, str] | Relate | None = None,
    *,
    certain: bool = True,
    assertion: str = "plain",
    event_at: str | None = None,
    reason: str = "scripted",
) -> Callable[[Sequence[Any]], str]:
    """A step for `ScriptedChatModel` that answers the prompt `reconcile/relate`.

    ```python
    ScriptedChatModel(rules=[("<new_memory>", relations({"I live in Porto.": "supersedes"}))])
    ```

    Args:
        relate: The relation by the text of the stored memory, or a function of the new and the
            stored text; every other memory coexists.
        certain: Whether the relations are certain.
        assertion: How the new memory is said.
        event_at: The date of its event.
        reason: The reason of every relation.
    """

    def answer(messages: Sequence[Any]) -> str:
        prompt = str(messages[-1].content)
        return relations_of(
            prompt,
            relate,
            certain=certain,
            assertion=assertion,
            event_at=event_at,
            reason=reason,
        )

    return answer


def relations_of(
    prompt: str,
    relate: Mapping[str, str] | Relate | None = None,
    *,
    certain: bool = True,
    assertion: str = "plain",
    event_at: str | None = None,
    reason: str = "scripted",
) -> str:
    """The answer to one prompt `reconcile/relate`; the arguments are those of `relations`."""
    shown, _, rest = prompt.partition("</stored_memories>")
    (quoted, *_) = _CANDIDATE_LINE.findall(rest)
    text: str = json.loads(quoted)
    rows: list[dict[str, Any]] = []
    for name, stored in _MEMORY_LINE.findall(shown):
        memory: str = json.loads(stored)
        by_text = (relate or {}).get(memory) if not callable(relate) else relate(text, memory)
        relation = by_text or "coexists"
        why = reason if by_text else ""
        rows.append({"memory": name, "reason": why, "relation": relation, "certain": certain})
    return json.dumps({"relations": rows, "assertion": assertion, "event_at": event_at})


def embeddings(body: Mapping[str, Any]) -> dict[str, Any]:
    """Embeddings of the texts of a request; the same text always has the same vector."""
    value = body.get("input", [])
    texts = [value] if isinstance(value, str) else list(value)
    rows = [
        {"object": "embedding", "index": i, "embedding": _hash_vector(str(text))}
        for i, text in enumerate(texts)
    ]
    read = sum(_words(str(text)) for text in texts)
    return {
        "object": "list",
        "data": rows,
        "model": body.get("model", "m"),
        "usage": {"prompt_tokens": read, "total_tokens": read},
    }


def _hash_vector(text: str) -> list[float]:
    # Not `HashEmbeddings`: the server as a process starts faster without LangChain.
    vector = [0.0] * _EMBEDDING_SIZE
    for word in text.lower().split() or [""]:
        digest = hashlib.sha256(word.encode()).digest()
        vector[int.from_bytes(digest[:4], "big") % _EMBEDDING_SIZE] += (
            1.0 if digest[4] % 2 else -1.0
        )
    length = math.sqrt(math.fsum(value * value for value in vector)) or 1.0
    # Words may cancel out, and a vector of zeros has no direction.
    return [value / length for value in vector] if any(vector) else [1.0, *vector[1:]]


def text_of_request(body: Mapping[str, Any]) -> str:
    """The text of all messages of a chat request."""
    contents = [message.get("content") for message in body.get("messages", [])]
    return "\n".join(text for text in contents if isinstance(text, str))


def _words(content: object) -> int:
    return len(content.split()) if isinstance(content, str) else 0
