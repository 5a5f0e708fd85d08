"""Guarded memory for an agent of LangChain's `create_agent`, in one line of middleware.

The answers are scripted and the local judge judges the memories, so this needs no key. Pass
`"openai:NAME"` to both for real models.

Prints:

    stored: I am allergic to peanuts.
    APPLY_CONSTRAINT: I am allergic to peanuts.
    Rice cakes would suit you.
"""

from langchain.agents import create_agent

from memguard import MemguardMiddleware
from memguard.stores import ChromaStore
from memguard.testing import ScriptedChatModel

model = ScriptedChatModel(["I will keep that in mind.", "Rice cakes would suit you."])
ana = {"user_id": "ana"}

with ChromaStore.memory() as store:
    agent = create_agent(
        model, store=store, middleware=[MemguardMiddleware("local")], context_schema=dict
    )
    first = agent.invoke({"messages": [("user", "I am allergic to peanuts.")]}, context=ana)
    question = "Which snack suits me, given that I am allergic to peanuts?"
    done = agent.invoke({"messages": [("user", question)]}, context=ana)

for receipt in first["memguard"]["MemguardMiddleware"]["writes"].receipts:
    print(f"{receipt.outcome}: {receipt.candidate.text.removeprefix('The user: ')}")
for unit in done["memguard"]["MemguardMiddleware"]["read"].admitted:
    print(f"{unit.permission}: {unit.unit.text.removeprefix('The user: ')}")
print(done["messages"][-1].text)
