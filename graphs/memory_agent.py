"""The host agent in LangGraph Studio: recall, answer, remember; in the server's own store."""

import os

from memguard import create_memory_agent, resolve_model

model = resolve_model(
    os.environ.get("MEMGUARD_MODEL"), base_url=os.environ.get("MEMGUARD_BASE_URL"), streams=True
)
graph = create_memory_agent(model, judge=os.environ.get("MEMGUARD_JUDGE"))
