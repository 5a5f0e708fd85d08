"""ConMem in LangGraph Studio; the model is named by MEMGUARD_MODEL."""

import os

from memguard import create_conmem_graph, resolve_model

graph = create_conmem_graph(
    resolve_model(os.environ.get("MEMGUARD_MODEL"), base_url=os.environ.get("MEMGUARD_BASE_URL"))
)
