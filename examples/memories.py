"""A person looks up, corrects, takes back and exports what is remembered about them.

Needs no key: no judge is asked about a person's own words.

Prints:

    current: I live in Lisbon.
    edited: I live in Porto. (moved)
    after the undo: I live in Porto.
    2 memories and 3 receipts exported
"""

import io

from memguard import Memories
from memguard.stores import ChromaStore

with ChromaStore.memory() as store, Memories(store, namespace=("memories", "ana")) as memories:
    added = memories.add("I live in Porto.", actor="ana")
    edited = memories.edit(added.record_key, "I live in Lisbon.", actor="ana", reason="moved")
    for memory in memories.list(include_superseded=True).memories:
        reason = f" ({memory.reason})" if memory.reason else ""
        print(f"{memory.state}: {memory.text}{reason}")

    memories.undo(edited.id, actor="ana")
    print(f"after the undo: {memories.list().memories[0].text}")

    report = memories.export(io.StringIO())
    print(f"{report.memories} memories and {report.receipts} receipts exported")
