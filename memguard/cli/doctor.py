"""`memguard doctor`: check what is configured, what is reachable, and what will be used."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from memguard.cli.opening import journal_path, open_journal, open_store, server_address
from memguard.cli.options import BaseUrlOption, EmbedOption, JsonOption, ModelOption, StoreOption
from memguard.cli.output import counts_line, print_json, print_table
from memguard.errors import MemguardError

Result = tuple[bool | None, str]
"""Whether a check passed, with `None` for a warning, and what it found."""

_STATES = {True: "ok", None: "warning", False: "amiss"}
"""The state that is printed for the result of a check; `None` is a warning."""
_CHANCE = 0.5
"""The AUC of a judge that guesses."""


def doctor(
    store: StoreOption = "memory",
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    embed: EmbedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the configuration, without a model call.

    Checks versions, model, calibration, embedder, store and receipts. The exit code is 1 if
    something is amiss; a warning does not change it.
    """
    import typer

    checks: dict[str, Result] = {
        "versions": _versions(),
        "model": _run(_model, model, base_url=base_url),
        "calibration": _run(_calibration, store, model=model),
        "embedder": _run(_embedder, embed),
        "store": _run(_store, store, embed=embed),
        "receipts": _run(_receipts, store),
    }
    if as_json:
        body = {
            name: {"ok": ok is not False, "state": _STATES[ok], "found": result}
            for name, (ok, result) in checks.items()
        }
        print_json(body)
    else:
        rows = [(name, _STATES[ok], result) for name, (ok, result) in checks.items()]
        print_table("memguard doctor", ("what", "state", "found"), rows)
    if any(ok is False for ok, _ in checks.values()):
        raise typer.Exit(1)


def _run(check: Callable[..., Result], *arguments: Any, **options: Any) -> Result:
    """The result of a check; an error is a result too, so that the other checks still run."""
    try:
        return check(*arguments, **options)
    except MemguardError as error:
        return False, error.message


def _versions() -> Result:
    import platform
    from importlib.metadata import version

    names = ("langgraph-memguard", "langgraph", "langchain-core", "langchain-openai", "chromadb")
    versions = [f"{name} {version(name)}" for name in names]
    return True, ", ".join([f"Python {platform.python_version()}", *versions])


def _model(model: str | None, *, base_url: str | None) -> Result:
    from memguard.llm.models import check_server, resolve_model
    from memguard.portal import run_sync

    if model in {None, "local"}:
        return True, "the local writer and judge are used, which are weaker than a strong model"
    return True, run_sync(check_server(resolve_model(model, base_url=base_url)))


def _calibration(store: str, *, model: str | None) -> Result:
    """The last result of `memguard calibrate` for this model; only a language model needs one."""
    from memguard.calibration import find_records
    from memguard.prompts import load_prompt

    if model is None or model == "local":
        return True, "not needed: the local judge ships with its calibration"
    records = find_records(journal_path(store).parent, model=model)
    if not records:
        return None, f"{model} was never measured as a judge: run memguard calibrate"
    last = records[-1]
    result = (
        f"{last.variant} on {last.at:%Y-%m-%d}: AUC {last.auc:.2f} "
        f"({last.auc_low:.2f} to {last.auc_high:.2f}), "
        f"suggested tau {'none' if last.suggested_tau is None else last.suggested_tau}"
    )
    # A measurement is about one prompt, and says nothing about another.
    prompts = (load_prompt("consistency_gate", name) for name in ("support", "support_yes_no"))
    if last.prompt not in {prompt.digest for prompt in prompts}:
        return None, f"{result}; the prompt has changed since: calibrate again"
    # The lower end of the interval: a judge that may be guessing should not judge.
    if last.auc_low <= _CHANCE or last.suggested_tau is None:
        return None, f"{result}; it should not judge"
    return True, result


def _embedder(embed: str | None) -> Result:
    from memguard.local.weights import find_weights

    if embed is not None:
        # A test request to a hosted model would cost money.
        return True, f"{embed}, not called before the first write"
    weights = find_weights()
    return True, f"built in, {weights.precision} weights from {weights.source}: {weights.path}"


def _store(store: str, *, embed: str | None) -> Result:
    if server_address(store) is None and _is_new(Path(store)):
        return True, f"{store!r} does not exist yet; the first write creates it"
    with open_store(store, embed=embed) as opened:
        spaces = opened.list_namespaces(limit=1000)
    return True, f"{store!r} opens; {len(spaces)} namespaces"


def _is_new(folder: Path) -> bool:
    """Whether nothing is stored there yet; checking must not create the store."""
    from memguard.calibration.run import RECORD_FILE

    if not folder.exists():
        return True
    # `memguard calibrate` saves its record in the folder, which is not a store yet.
    # If it is not a folder, opening the store reports that better than this check could.
    return folder.is_dir() and [file.name for file in folder.iterdir()] == [RECORD_FILE]


def _receipts(store: str) -> Result:
    from memguard.journal.receipts import ReceiptLog

    # Opening would create the file.
    if not journal_path(store).exists():
        return True, "none yet"
    with open_journal(store) as journal:
        return True, counts_line(ReceiptLog(journal).count())
