"""The write guard in LangGraph Studio; it writes to the server's own store."""

import os

from memguard import create_write_guard, resolve_model

graph = create_write_guard(
    resolve_model(os.environ.get("MEMGUARD_MODEL"), base_url=os.environ.get("MEMGUARD_BASE_URL"))
)
