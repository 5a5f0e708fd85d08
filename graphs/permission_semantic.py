"""Permission-Semantic Admission (PS) in LangGraph Studio: a permission for each unit."""

import os

from memguard.studio import PermissionForm, in_studio

FORM = PermissionForm(
    model=os.environ.get("MEMGUARD_MODEL", ""), base_url=os.environ.get("MEMGUARD_BASE_URL", "")
)
graph = in_studio(FORM)
