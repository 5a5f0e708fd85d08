"""langmem's memory tool with `guard_store`: only what the conversation supports is stored.

The model decides what to write, as before. The guarded store judges each write against the
conversation in which the tool was called. The models are scripted, so this needs no key.

Prints:

    kept: The user lives in Porto.
    rejected: The user does not eat meat.
      support 0.05 < 0.70 over 5 samples: the colleague, not the user, avoids meat
"""

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.store.memory import InMemoryStore
from langmem import create_manage_memory_tool

from memguard import guard_store
from memguard.testing import ScriptedChatModel

ANA = ("memories", "ana")
PORTO, MEAT = "The user lives in Porto.", "The user does not eat meat."


def keep(text: str) -> AIMessage:
    """Return the message of a model that stores a memory."""
    call = {"name": "manage_memory", "args": {"content": text}, "id": text, "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


judge = ScriptedChatModel(
    rules=[
        (PORTO, {"reason": "the user says so", "turns": [1], "score": 0.95}),
        (MEAT, {"reason": "the colleague, not the user, avoids meat", "turns": [1], "score": 0.05}),
    ],
    supports_n=True,
)
store = guard_store(InMemoryStore(), model=judge)
agent = create_agent(
    ScriptedChatModel([keep(PORTO), keep(MEAT), "Noted!"]),
    tools=[create_manage_memory_tool(namespace=ANA)],
    store=store,
)
agent.invoke({"messages": [("user", "I live in Porto. My colleague doesn't eat meat.")]})

for item in store.search(ANA):
    print(f"kept: {item.value['content']}")
for receipt in store.receipts.list().receipts:
    if receipt.outcome != "stored":
        print(f"{receipt.outcome}: {receipt.candidate.text}\n  {receipt.decision.explanation}")
