"""The errors that memguard raises, and their codes.

```text
MemguardError
├── ConfigurationError     (a ValueError) a setting or an input is wrong: fix it, then run again
│   ├── ModelConfigurationError   the model cannot be used as configured (key, name, feature)
│   ├── StoreConfigurationError   the store cannot be opened or used as configured
│   └── InvalidInputError         the data that was passed cannot be used
└── GuardError             (a RuntimeError) the run failed although nothing you passed was wrong
    ├── AnswerError        the answering model gave no answer
    ├── JudgeError         a model gave no usable verdict and the policy is to raise
    ├── BudgetExhaustedError   the run's budget is spent; finished work is kept
    ├── StoreError         the memory store failed
    ├── RecordChangedError     a memory changed after the decision on it was made
    └── ReceiptError       the receipt log failed
```

Every error carries an `ErrorCode`. `docs/errors.md` explains each code; an installed package prints
the same text with `memguard explain CODE`.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial


class ErrorCode(StrEnum):
    """Stable names of errors, in the order of their headings in `docs/errors.md`."""

    MODEL_MISSING = "model-missing"
    MODEL_STRING = "model-string"
    MODEL_EXTRA = "model-extra"
    MODEL_AUTH = "model-auth"
    MODEL_UNKNOWN = "model-unknown"
    MODEL_QUOTA = "model-quota"
    MODEL_UNREACHABLE = "model-unreachable"
    MODEL_REQUEST = "model-request"
    MODEL_LOGPROBS = "model-logprobs"
    MODEL_ABSENT = "model-absent"
    MODEL_DOWNLOAD = "model-download"
    MODEL_DIGEST = "model-digest"
    MODEL_SPACE = "model-space"
    PROMPT_SLOTS = "prompt-slots"
    SPEC_INVALID = "spec-invalid"
    NAMESPACE_INVALID = "namespace-invalid"
    NAMESPACE_UNRESOLVED = "namespace-unresolved"
    INPUT_INVALID = "input-invalid"
    MEMORY_NOT_FOUND = "memory-not-found"
    IMPORT_CONFLICT = "import-conflict"
    FILE_UNREADABLE = "file-unreadable"
    STORE_MISSING = "store-missing"
    STORE_PATH = "store-path"
    STORE_LOCKED = "store-locked"
    STORE_METRIC = "store-metric"
    STORE_EMBEDDER = "store-embedder"
    STORE_INDEX = "store-index"
    STORE_LOOP = "store-loop"
    STORE_VALUE = "store-value"
    STORE_FILTER = "store-filter"
    STORE_CLOSED = "store-closed"
    STORE_UNREACHABLE = "store-unreachable"
    STORE_COLLECTION = "store-collection"
    STORE_FAILED = "store-failed"
    EMBEDDER_MISSING = "embedder-missing"
    EMBEDDER_OUTPUT = "embedder-output"
    EMBEDDER_FAILED = "embedder-failed"
    ANSWER_FAILED = "answer-failed"
    JUDGE_INCONCLUSIVE = "judge-inconclusive"
    BUDGET_EXHAUSTED = "budget-exhausted"
    RECEIPT_NOT_FOUND = "receipt-not-found"
    RECEIPT_FAILED = "receipt-failed"
    QUARANTINE_STATE = "quarantine-state"
    RECORD_CHANGED = "record-changed"
    WRITE_REFUSED = "write-refused"
    DRAW_EXTRA = "draw-extra"
    FRAME_EXTRA = "frame-extra"
    MIDDLEWARE_EXTRA = "middleware-extra"


DOCS_URL = "https://memguard.github.io/langgraph-memguard"
"""The documentation site, as in `[project.urls]` of `pyproject.toml`."""


class MemguardError(Exception):
    """Base class of every error that memguard raises on purpose.

    Attributes:
        code: The stable name of this kind of error.
        message: What happened and what to do, without the code.
    """

    def __init__(self, message: str, *, code: ErrorCode) -> None:
        # The command works where nothing but the package is installed, also without a network.
        super().__init__(f"{message} [{code}; see `memguard explain {code}`]")
        self.code = code
        self.message = message

    @property
    def url(self) -> str:
        """The address of the page that explains `code`."""
        return error_url(self.code)

    def __reduce__(self) -> tuple[Callable[..., "MemguardError"], tuple[str]]:
        """Support pickling and copying."""
        # By default only the positional arguments are passed on, and `code` is a keyword.
        return partial(type(self), code=self.code), (self.message,)


def error_url(code: ErrorCode) -> str:
    """The address of the page that explains an error code."""
    return f"{DOCS_URL}/errors.html#{code}"


# Servers such as LangGraph Platform tell a client only of errors of Python's own classes.
class ConfigurationError(MemguardError, ValueError):
    """Something you set or passed must change before a run can succeed."""


class ModelConfigurationError(ConfigurationError):
    """The model cannot be used as configured; a retry would fail in the same way."""


class StoreConfigurationError(ConfigurationError):
    """The store cannot be opened or used as configured."""


class InvalidInputError(ConfigurationError):
    """The data that was passed cannot be used."""


class GuardError(MemguardError, RuntimeError):
    """The run failed although nothing you passed was wrong."""


class AnswerError(GuardError):
    """The answering model gave no answer; stored memories are not affected."""


class JudgeError(GuardError):
    """A model gave no usable verdict, and the gate is set to raise in that case."""


class BudgetExhaustedError(GuardError):
    """The next request would exceed the run's budget; finished work is kept."""


class StoreError(GuardError):
    """The memory store failed."""


class RecordChangedError(GuardError):
    """A memory has changed since a decision about it was made; nothing of the decision was kept."""


class ReceiptError(GuardError):
    """The receipt log failed; nothing was reported as stored."""


def error_classes() -> dict[str, type[MemguardError]]:
    """Every loaded class of the tree, by name."""
    return {cls.__name__: cls for cls in _tree(MemguardError)}


def _tree(cls: type[MemguardError]) -> Iterator[type[MemguardError]]:
    for subclass in cls.__subclasses__():
        yield from _tree(subclass)
    # Last, so that a class of memguard is not hidden by a user's subclass of the same name.
    yield cls
