"""The write guard in LangGraph's functional API, together with a direct write to the store.

The model is scripted, so this needs no key. Pass `"openai:NAME"` for a real model.

Prints:

    {'stored': 1, 'duplicate': 0, 'quarantined': 0, 'rejected': 0, 'refused': 0}
    The user lives in Porto.
    The user rows.
"""

from langgraph.func import entrypoint
from langgraph.store.memory import InMemoryStore

from memguard import create_write_guard, guard_store, use_source
from memguard.testing import ScriptedChatModel

PORTO = {"text": "The user lives in Porto.", "about": "the user", "turns": [1]}
ANA = ("memories", "ana")

model = ScriptedChatModel(rules=[("<new_turns>", {"facts": [PORTO]}), ("", "0.95")])
store = guard_store(InMemoryStore(), model=model)
remember = create_write_guard(model, store=store, namespace=ANA)


@entrypoint()
def turn(text: str) -> dict:
    """Answer, and remember what the user said."""
    writes = remember.invoke({"messages": [("user", text)]})["writes"]
    # A direct write must name its source; without one it is quarantined.
    with use_source(text):
        store.put(ANA, "hobby", {"content": "The user rows."})
    return writes.counts


print(turn.invoke("I live in Porto, and I row."))
for text in sorted(item.value["content"] for item in store.search(ANA)):
    print(text)
