"""A deep agent with memory files in a guarded store: the guard judges what each edit adds.

Files under `/memories/` go to the store and are judged. All other files stay in the agent's state
and are not judged. The models are scripted, so this needs no key. Run `pip install deepagents`.

Prints:

    /user.md:
      # The user
      - lives in Porto
    rejected: # The user / - does not eat meat
      support 0.05 < 0.70 over 5 samples: the colleague, not the user, avoids meat
    in the state: ['/plan.md']
"""

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend, StoreBackend
from langchain_core.messages import AIMessage
from langgraph.store.memory import InMemoryStore

from memguard import guard_store
from memguard.testing import ScriptedChatModel

ANA = ("memories", "ana")
PORTO = "- lives in Porto"
MEAT = "- does not eat meat"


def use(name: str, **args: str) -> AIMessage:
    """Return the message of a model that calls a tool."""
    call = {"name": name, "args": args, "id": f"{name} {args['file_path']}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


model = ScriptedChatModel(
    [
        use("write_file", file_path="/plan.md", content="1. Find a place.\n2. Book it."),
        use("write_file", file_path="/memories/user.md", content=f"# The user\n{PORTO}"),
        use(
            "edit_file",
            file_path="/memories/user.md",
            old_string=PORTO,
            new_string=f"{PORTO}\n{MEAT}",
        ),
        "Noted!",
    ]
)
judge = ScriptedChatModel(
    rules=[
        (PORTO, {"reason": "the user says so", "turns": [1], "score": 0.95}),
        (MEAT, {"reason": "the colleague, not the user, avoids meat", "turns": [1], "score": 0.05}),
    ],
    supports_n=True,
)
store = guard_store(InMemoryStore(), model=judge)
files = StoreBackend(namespace=lambda _: ANA)
agent = create_deep_agent(
    model,
    store=store,
    backend=CompositeBackend(default=StateBackend(), routes={"/memories/": files}),
)
done = agent.invoke({"messages": [("user", "I live in Porto. My colleague doesn't eat meat.")]})

for item in store.search(ANA):
    print(f"{item.key}:")
    for line in item.value["content"].splitlines():
        print(f"  {line}")
for receipt in store.receipts.list().receipts:
    if receipt.outcome != "stored":
        print(f"{receipt.outcome}: {' / '.join(receipt.candidate.text.splitlines())}")
        print(f"  {receipt.decision.explanation}")
print(f"in the state: {sorted(done['files'])}")
