"""`memguard doctor`: check what is configured, what is reachable, and what will be used."""

from pathlib import Path

from memguard.cli.options import BaseUrlOption, EmbedOption, JsonOption, ModelOption, StoreOption

_STATES = {True: "ok", None: "warning", False: "amiss"}
"""The state that is printed for the result of a check; `None` is a warning."""


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

    from memguard.cli.output import print_json, print_table

    checks: dict[str, tuple[bool | None, str]] = {
        "versions": _versions(),
        "model": _model(model, base_url=base_url),
        "calibration": _calibration(store, model=model),
        "embedder": _embedder(embed),
        "store": _store(store, embed=embed),
        "receipts": _receipts(store),
    }
    if as_json:
        print_json(
            {
                name: {"ok": ok is not False, "state": _STATES[ok], "found": result}
                for name, (ok, result) in checks.items()
            }
        )
    else:
        rows = [(name, _STATES[ok], result) for name, (ok, result) in checks.items()]
        print_table("memguard doctor", ("what", "state", "found"), rows)
    if any(ok is False for ok, _ in checks.values()):
        raise typer.Exit(1)


def _versions() -> tuple[bool, str]:
    import platform
    from importlib.metadata import version

    names = ("langgraph-memguard", "langgraph", "langchain-core", "langchain-openai", "chromadb")
    versions = [f"{name} {version(name)}" for name in names]
    return True, ", ".join([f"Python {platform.python_version()}", *versions])


def _model(model: str | None, *, base_url: str | None) -> tuple[bool, str]:
    from memguard.cli.opening import open_model
    from memguard.errors import MemguardError
    from memguard.llm.models import check_server
    from memguard.portal import run_sync

    if model in {None, "local"}:
        return True, "the local writer and judge are used, which are weaker than a strong model"
    try:
        opened = open_model(model, base_url=base_url)
        return True, run_sync(check_server(opened))
    except MemguardError as error:
        return False, error.message


def _calibration(store: str, *, model: str | None) -> tuple[bool | None, str]:
    """The last result of `memguard calibrate` for this model; only a language model needs one."""
    from memguard.calibration import find_records
    from memguard.cli.opening import journal_path
    from memguard.errors import MemguardError

    if model is None or model == "local":
        return True, "not needed: the local judge comes with its own"
    try:
        records = find_records(journal_path(store).parent, model=model)
    except MemguardError as error:
        return False, error.message
    if not records:
        return None, f"{model} was never measured as a judge: run memguard calibrate"
    last = records[-1]
    result = (
        f"{last.variant} on {last.at:%Y-%m-%d}: AUC {last.auc:.2f} "
        f"({last.auc_low:.2f} to {last.auc_high:.2f}), "
        f"suggested tau {'none' if last.suggested_tau is None else last.suggested_tau}"
    )
    # A measurement is about one prompt, and says nothing about another.
    if last.prompt not in _digests():
        return None, f"{result}; the prompt has changed since: calibrate again"
    if last.auc_low <= _CHANCE or last.suggested_tau is None:
        return None, f"{result}; it should not judge"
    return True, result


_CHANCE = 0.5


def _digests() -> set[str]:
    from memguard.prompts import load_prompt

    names = ("support", "support_yes_no")
    return {load_prompt("consistency_gate", name).digest for name in names}


def _embedder(embed: str | None) -> tuple[bool, str]:
    from memguard.errors import MemguardError

    if embed is not None:
        # A test request to a hosted model would cost money.
        return True, f"{embed}, asked at the first write"
    try:
        from memguard.local.weights import find_weights

        weights = find_weights()
    except MemguardError as error:
        return False, error.message
    return True, f"built in, {weights.precision} weights from {weights.source}: {weights.path}"


def _store(store: str, *, embed: str | None) -> tuple[bool, str]:
    from memguard.cli.opening import open_store, server_address
    from memguard.errors import MemguardError

    if server_address(store) is None and _is_new(Path(store)):
        return True, f"{store!r} does not exist yet; the first write makes it"
    try:
        with open_store(store, embed=embed) as opened:
            spaces = opened.list_namespaces(limit=1000)
    except MemguardError as error:
        return False, error.message
    return True, f"{store!r} opens; {len(spaces)} namespaces"


def _is_new(folder: Path) -> bool:
    """Whether nothing is stored there yet; checking must not create the store."""
    from memguard.calibration.run import RECORD_FILE

    if not folder.exists():
        return True
    # If it is not a folder, opening the store reports that better than this check could.
    return folder.is_dir() and [file.name for file in folder.iterdir()] == [RECORD_FILE]


def _receipts(store: str) -> tuple[bool, str]:
    from memguard.cli.opening import journal_path, open_journal
    from memguard.cli.output import counts_line
    from memguard.errors import MemguardError
    from memguard.journal.receipts import ReceiptLog

    # Opening would create the file.
    if not journal_path(store).exists():
        return True, "none yet"
    try:
        with open_journal(store) as journal:
            return True, counts_line(ReceiptLog(journal).count())
    except MemguardError as error:
        return False, error.message
