"""A chat completion as server-sent events, for requests with `stream: true`."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from memguard.testing.replies import ServerReply


def as_events(completion: ServerReply, *, body: Mapping[str, Any]) -> ServerReply:
    """The same completion as events, one for each word; an error reply is returned unchanged."""
    if completion.status != 200:
        return completion
    whole: dict[str, Any] = json.loads(completion.payload())
    with_usage = bool((body.get("stream_options") or {}).get("include_usage"))
    chunks = [*_chunks(whole), *([_chunk(whole, [], usage=whole["usage"])] if with_usage else [])]
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return ServerReply(
        raw="".join([*lines, "data: [DONE]\n\n"]),
        content_type="text/event-stream",
        latency=completion.latency,
    )


def _chunks(whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for choice in whole["choices"]:
        message = choice["message"]
        words = (message["content"] or "").split(" ")
        pieces = [word if i == 0 else f" {word}" for i, word in enumerate(words)]
        for piece in pieces:
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
    return {
        "id": whole["id"],
        "object": "chat.completion.chunk",
        "created": whole["created"],
        "model": whole["model"],
        "choices": choices,
        "usage": usage,
    }
