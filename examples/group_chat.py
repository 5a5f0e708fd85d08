"""A bot that answers in direct messages and in a channel, and keeps private memories private.

The answers are scripted and the local judge judges the memories, so this needs no key.

Prints:

    direct message, Ana: Which day trip in the mountains would suit me?
      knows: I am pregnant.
      knows: I prefer the mountains to the sea.
    #team, Ana: Which day trip in the mountains would suit me?
      knows: I prefer the mountains to the sea.
      keeps quiet (audience-health)
    #team, Rui: Which day trip would suit Ana?
      keeps quiet (audience-other-owner)
      keeps quiet (audience-health)
"""

from typing import Any

from langchain_core.messages import HumanMessage

from memguard import create_memory_agent
from memguard.stores import ChromaStore
from memguard.testing import ScriptedChatModel

MEMBERS = {"U1": "Ana", "U2": "Rui"}
MEMORIES = ("I prefer the mountains to the sea.", "I am pregnant.")
PLACE = "Which day trip in the mountains would suit me?"


def ask(agent: Any, text: str, *, name: str, channel: str) -> None:
    """Run one turn for a member, and print which memories the answer may use."""
    context = {
        # The thread is Ana's, whoever writes in it.
        "user_id": "U1",
        "audience": "private" if channel == "direct message" else "group",
        "participants": MEMBERS,
    }
    read = agent.invoke({"messages": [HumanMessage(text, name=name)]}, context=context)["read"]
    print(f"{channel}, {name}: {text}")
    for verdict in read.admitted:
        print(f"  knows: {verdict.unit.text}")
    for verdict in read.withheld:
        print(f"  keeps quiet ({verdict.row})")


with ChromaStore.memory() as store:
    for number, memory in enumerate(MEMORIES):
        store.put(("memories", "U1"), f"m{number}", {"content": memory}, index=["content"])
    model = ScriptedChatModel(["In the mountains, perhaps?"] * 3)
    agent = create_memory_agent(model, judge="local", store=store, write=False)
    ask(agent, PLACE, name="Ana", channel="direct message")
    ask(agent, PLACE, name="Ana", channel="#team")
    ask(agent, "Which day trip would suit Ana?", name="Rui", channel="#team")
