"""The read guard in LangGraph Studio; it reads the server's own store. No model: local rules."""

import os

from memguard import create_read_guard, resolve_model

NAME, URL = os.environ.get("MEMGUARD_MODEL"), os.environ.get("MEMGUARD_BASE_URL")
graph = create_read_guard(resolve_model(NAME, base_url=URL) if NAME else "local")
