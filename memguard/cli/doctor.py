"""`memguard doctor`: check what is configured, what is reachable, and what will be used."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from memguard.cli.opening import journal_path, open_journal, open_store, server_address
from memguard.cli.options import (
    BaseUrlOption,
    EmbedOption,
    JsonOption,
    ModelOption,
    RepairOption,
    StoreOption,
)
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
    repair: RepairOption = False,
    as_json: JsonOption = False,
) -> None:
    """Check the configuration, without a model call.

    Checks versions, model, calibration, embedder, store and receipts, and whether the store has
    what the receipts say. The exit code is 1 if something is amiss; a warning does not change it.
    """
    import typer

    repairs = {"repair": _run(_repair, store, embed=embed)} if repair else {}
    checks: dict[str, Result] = {
        **repairs,
        "versions": _versions(),
        "model": _run(_model, model, base_url=base_url),
        "pulled": _run(_pulled),
        "calibration": _run(_calibration, store, model=model),
        "embedder": _run(_embedder, embed),
        "languages": _languages(),
        "store": _run(_store, store, embed=embed),
        "receipts": _run(_receipts, store),
        "memories": _run(_memories, store, embed=embed),
        "files": _run(_files, store),
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
    resolved = resolve_model(model, base_url=base_url)
    if resolved.name.startswith(("local:", "llamacpp:")):
        return True, f"{resolved.name} is a file on this machine, loaded at the first call"
    return True, run_sync(check_server(resolved))


def _pulled() -> Result:
    """The models that `memguard models pull` has fetched."""
    from memguard.llm.local_models import list_local_models, models_folder

    stored = list_local_models()
    folder = models_folder()
    pulled = [entry.model.name for entry in stored if entry.state == "pulled"]
    partial = [entry.model.name for entry in stored if entry.state == "partial"]
    lines = [f"{', '.join(pulled)}, in {folder}" if pulled else "no local model"]
    if partial:
        lines.append(f"{', '.join(partial)} only partly: run memguard models pull again")
    return (None if partial else True), "; ".join(lines)


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
    names = ("support", "support_yes_no", "paper_support", "paper_support_yes_no")
    prompts = (load_prompt("consistency_gate", name) for name in names)
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


def _languages() -> Result:
    from memguard.local.relevance.multilingual import PACKAGE, is_installed

    if is_installed():
        return True, f"English by the built-in embedder, other languages by {PACKAGE}"
    return True, (
        "English by the built-in embedder, German, Spanish, French and Chinese by a table of "
        "topics; the extra `multilingual` adds an encoder for other languages"
    )


def _store(store: str, *, embed: str | None) -> Result:
    if server_address(store) is None and _is_new(Path(store)):
        return True, f"{store!r} does not exist yet; the first write creates it"
    if damage := _damage(store):
        return False, f"{damage}; run memguard doctor --repair"
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


def _memories(store: str, *, embed: str | None) -> Result:
    """Whether the store has the memories that the receipts say are in it."""
    from memguard.journal.audit import audit
    from memguard.portal import run_sync

    if not journal_path(store).exists():
        return True, "no receipts yet to compare with"
    if damage := _damage(store):
        return False, f"not compared: {damage}"
    with open_store(store, embed=embed) as opened, open_journal(store) as journal:
        found = run_sync(audit(journal, opened))
    counts = (
        (len(found.without_record), "in the receipts and not in the store"),
        (len(found.altered), "with another text than in the receipts"),
        (len(found.unmarked), "whose change of another memory is not in the store"),
        (len(found.pending), "whose write or deletion was interrupted"),
    )
    amiss = ", ".join(f"{count} {what}" for count, what in counts if count)
    if amiss:
        return False, f"memories: {amiss}; run memguard doctor --repair"
    compared = f"{found.checked_receipts} receipts agree with the store"
    if found.without_receipt:
        return None, f"{compared}; {len(found.without_receipt)} items were stored without a receipt"
    return True, compared


def _files(store: str) -> Result:
    from memguard.private_files import readable_by_others

    if server_address(store) is not None or not Path(store).is_dir():
        return True, "no files of a store here"
    count = len(list(readable_by_others(Path(store))))
    if count:
        return None, f"other users can read {count} files or folders; memguard doctor --repair"
    return True, "only their owner can read them"


def _damage(store: str) -> str:
    """What is wrong with the database files of a store, in one line; empty if they are sound."""
    from memguard.journal.repair import find_damage

    faults = ((path.name, find_damage(path)) for path in _databases(store))
    return ", ".join(f"{name} is damaged ({fault})" for name, fault in faults if fault)


def _databases(store: str) -> list[Path]:
    if server_address(store) is not None:
        return [journal_path(store)]
    return [Path(store) / "chroma.sqlite3", journal_path(store)]


def _repair(store: str, *, embed: str | None) -> Result:
    """Set damaged files aside, and restore what the receipts contain."""
    from memguard.journal.repair import repair
    from memguard.portal import run_sync
    from memguard.private_files import make_private, readable_by_others

    lines = _replace_damaged(store)
    if journal_path(store).exists():
        with open_store(store, embed=embed) as opened, open_journal(store) as journal:
            listed = opened.repair()
            result = run_sync(repair(journal, opened))
        lines += [listed, result.line]
    if server_address(store) is None and Path(store).is_dir():
        private = make_private(readable_by_others(Path(store)))
        lines += [f"{private} files or folders made private"] if private else []
    return True, "; ".join(lines) or "nothing to repair"


def _replace_damaged(store: str) -> list[str]:
    """Move damaged databases to another folder, and copy the rows of the log that can be read."""
    from datetime import UTC, datetime

    from memguard.journal.repair import find_damage, salvage_journal, set_aside

    now, lines = datetime.now(UTC), list[str]()
    for path in _databases(store):
        if not find_damage(path):
            continue
        parts = [path, *(path.with_name(f"{path.name}-{end}") for end in ("wal", "shm"))]
        if path != journal_path(store):
            # The folders of the indexes belong to the rows of this database.
            parts += [entry.parent for entry in path.parent.glob("*/header.bin")]
        folder = set_aside(parts, at=now)
        line = f"{path.name} was damaged and is now in {str(folder)!r}"
        if path == journal_path(store):
            copied, lost = salvage_journal(folder / path.name, path, now=now)
            line += f", {copied} of its {copied + lost} rows were copied"
        lines.append(line)
    return lines
