"""Factor-Compiled Admission (FC) in LangGraph Studio: may a memory enter the prompt?"""

import os

from memguard.studio import FactorForm, in_studio

FORM = FactorForm(
    model=os.environ.get("MEMGUARD_MODEL", ""), base_url=os.environ.get("MEMGUARD_BASE_URL", "")
)
graph = in_studio(FORM)
