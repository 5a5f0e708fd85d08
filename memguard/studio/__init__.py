"""Entries for LangGraph Studio: what is chosen in its form, and the graphs made from that."""

from memguard.studio.contexts import (
    AgentForm,
    ConMemForm,
    FactorForm,
    GateForm,
    PermissionForm,
    ReadForm,
    WriteForm,
)
from memguard.studio.entry import in_studio

__all__ = [
    "AgentForm",
    "ConMemForm",
    "FactorForm",
    "GateForm",
    "PermissionForm",
    "ReadForm",
    "WriteForm",
    "in_studio",
]
