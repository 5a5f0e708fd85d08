"""What the model behind the pages answers to ConMem's prompts."""

from typing import Any

from memguard.testing.conmem import ConMemScript

WHY = "the colleague, not the user, avoids meat"


def answer_conmem(request: dict[str, Any]) -> str | None:
    """An answer to a prompt of ConMem; `None` for any other prompt."""
    prompt = str(request["messages"][-1]["content"])
    if "<history>" not in prompt and "<request>" not in prompt:
        return None
    reason = {"reason_type": "attribution_confusion", "confidence": 0.9, "explanation": WHY}
    script = ConMemScript({"relevant": "risk", "risk": "risk"}, answers={"reason": reason})
    said = script.serve(request)
    return said if isinstance(said, str) else None
