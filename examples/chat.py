"""A conversation with an agent that remembers, in two threads.

The answers are scripted and the local judge judges the memories, so this needs no key. Pass
`"openai:NAME"` for a real model, or run `memguard chat` to talk to the agent yourself.

Prints:

    you    I am allergic to peanuts.
    agent  I will keep that in mind.
           stored: I am allergic to peanuts.
    (another day)
    you    Which snack suits me, given my peanut allergy?
    agent  Rice cakes would suit you.
           APPLY_CONSTRAINT: I am allergic to peanuts.
"""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from memguard import create_memory_agent
from memguard.stores import ChromaStore
from memguard.testing import ScriptedChatModel

model = ScriptedChatModel(["I will keep that in mind.", "Rice cakes would suit you."])
ana: Any = {"user_id": "ana"}


def say(agent: Any, text: str, *, thread: str) -> None:
    """Run one turn, and print what was stored and what was admitted."""
    config = {"configurable": {"thread_id": thread}}
    out = agent.invoke({"messages": [("user", text)]}, config, context=ana)
    print(f"you    {text}\nagent  {out['messages'][-1].text}")
    for receipt in out["writes"].receipts:
        print(f"       {receipt.outcome}: {receipt.candidate.text.removeprefix('The user: ')}")
    for unit in out["read"].admitted:
        print(f"       {unit.permission}: {unit.unit.text.removeprefix('The user: ')}")


with ChromaStore.memory() as store:
    agent = create_memory_agent(model, judge="local", store=store, checkpointer=InMemorySaver())
    say(agent, "I am allergic to peanuts.", thread="monday")
    print("(another day)")
    say(agent, "Which snack suits me, given my peanut allergy?", thread="tuesday")
