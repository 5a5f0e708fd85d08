"""ConsistencyGate by itself: one candidate and its source in, a decision out; nothing is stored.

The model is scripted, so this needs no key. Pass `"openai:NAME"` for a real model.

Prints:

    reject: support 0.06 < 0.70 over 5 samples: the colleague, not the user, avoids meat
    quarantine: not judged: 0 of 5 samples usable: 5 x parse_failure
"""

from memguard import create_consistency_gate_graph
from memguard.testing import ScriptedChatModel

REASON = "the colleague, not the user, avoids meat"
ANSWERS = [{"reason": REASON, "turns": [1], "score": score} for score in (0, 0.1, 0.1, 0.05, 0.05)]

model = ScriptedChatModel([*ANSWERS, *["I would rather not say."] * 5], supports_n=True)
gate = create_consistency_gate_graph(model)
source = "My colleague doesn't eat meat. A place for her farewell?"

for candidate in ("The user is vegetarian.", "The user has a colleague."):
    decision = gate.invoke({"candidate": candidate, "context": source})["decision"]
    print(f"{decision.outcome}: {decision.explanation}")
