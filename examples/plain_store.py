"""ChromaStore by itself: a LangGraph store without a gate or a model.

Prints:

    tea: Ana drinks tea, never coffee.
    home is kept, 2 items in ('memories', 'ana@example.org')
"""

import tempfile

from memguard.stores import ChromaStore

ana = ("memories", "ana@example.org")
folder = tempfile.mkdtemp()

with ChromaStore.local(folder) as store:
    store.put(ana, "home", {"text": "Ana lives in Porto.", "kind": "fact"})
    store.put(ana, "tea", {"text": "Ana drinks tea, never coffee.", "kind": "taste"})
    (best,) = store.search(ana, query="What does she drink?", limit=1)
    print(f"{best.key}: {best.value['text']}")

with ChromaStore.local(folder) as store:
    (item,) = store.search(ana, filter={"kind": "fact"})
    print(f"{item.key} is kept, {store.count(ana)} items in {ana}")
