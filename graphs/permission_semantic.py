"""Permission-Semantic Admission in LangGraph Studio; the model is named by MEMGUARD_MODEL."""

import os

from memguard import create_permission_semantic_graph, resolve_model

graph = create_permission_semantic_graph(
    resolve_model(os.environ.get("MEMGUARD_MODEL"), base_url=os.environ.get("MEMGUARD_BASE_URL"))
)
