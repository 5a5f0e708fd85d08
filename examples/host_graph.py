"""A host graph that stores what a conversation supports.

The model is scripted, so this needs no key. Pass `"openai:NAME"` for a real model.

Prints:

    stored: The user lives in Porto.
      support 0.95 >= 0.70 over 5 samples: the user says so
    rejected: The user does not eat meat.
      support 0.05 < 0.70 over 5 samples: the colleague, not the user, avoids meat
"""

from typing import Annotated

from langchain_core.messages import HumanMessage
from langgraph.channels import UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from memguard import WriteReport, create_write_guard
from memguard.stores import ChromaStore
from memguard.testing import ScriptedChatModel

PORTO = {"text": "The user lives in Porto.", "about": "the user", "turns": [1]}
MEAT = {"text": "The user does not eat meat.", "about": "the user", "turns": [1]}
NOT_THE_USER = "the colleague, not the user, avoids meat"


class State(MessagesState, total=False):
    """The state of the host graph: the guard reads `messages` and fills `writes`.

    An untracked value is in the result of a run, but not in the checkpoints of its thread.
    """

    writes: Annotated[WriteReport, UntrackedValue]


model = ScriptedChatModel(
    rules=[
        ("<new_turns>", {"facts": [PORTO, MEAT]}),
        ("The user lives", {"reason": "the user says so", "turns": [1], "score": 0.95}),
        ("The user does not", {"reason": NOT_THE_USER, "turns": [1], "score": 0.05}),
    ],
    supports_n=True,
)
with ChromaStore.memory() as store:
    builder = StateGraph(State)
    builder.add_node("remember", create_write_guard(model, store=store))
    builder.add_edge(START, "remember")
    graph = builder.compile(checkpointer=InMemorySaver())
    talk = HumanMessage("I live in Porto. My colleague doesn't eat meat.")
    config = {"configurable": {"thread_id": "1", "user_id": "ana"}}
    out = graph.invoke({"messages": [talk]}, config)

for receipt in out["writes"].receipts:
    print(f"{receipt.outcome}: {receipt.candidate.text}\n  {receipt.decision.explanation}")
