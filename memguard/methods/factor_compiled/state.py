"""What goes into Factor-Compiled Admission, and what comes out."""

from memguard.adjudication.state import ReadInput, ReadOutput, ReadState


class FactorInput(ReadInput):
    """A query with what was recalled for it."""


class FactorOutput(ReadOutput):
    """What may enter the prompt, entry by entry."""


class FactorState(ReadState):
    """What passes from node to node."""
