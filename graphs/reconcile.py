"""Reconciliation in LangGraph Studio: how does a memory change what is stored already?"""

import os

from memguard.studio import ReconcileForm, in_studio

FORM = ReconcileForm(
    model=os.environ.get("MEMGUARD_MODEL", ""), base_url=os.environ.get("MEMGUARD_BASE_URL", "")
)
graph = in_studio(FORM)
