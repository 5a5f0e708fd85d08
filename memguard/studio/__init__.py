"""Entries for LangGraph Studio: forms, and the graphs that they describe."""

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
