"""What goes into Permission-Semantic Admission, and what comes out."""

from memguard.adjudication.state import ReadInput, ReadOutput, ReadState


class PermissionInput(ReadInput):
    """A query with what was recalled for it."""


class PermissionOutput(ReadOutput):
    """What may enter the prompt, unit by unit."""


class PermissionState(ReadState):
    """What passes from node to node."""
