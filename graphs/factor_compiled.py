"""Factor-Compiled Admission in LangGraph Studio; the model is named by MEMGUARD_MODEL."""

import os

from memguard import create_factor_compiled_graph, resolve_model

graph = create_factor_compiled_graph(
    resolve_model(os.environ.get("MEMGUARD_MODEL"), base_url=os.environ.get("MEMGUARD_BASE_URL"))
)
