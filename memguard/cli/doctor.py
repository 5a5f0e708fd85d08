"""`memguard doctor`: what is configured, what is reachable, what will be used."""

from pathlib import Path

from memguard.cli.options import BaseUrlOption, EmbedOption, JsonOption, ModelOption, StoreOption


def doctor(
    store: StoreOption = "memory",
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    embed: EmbedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the set-up without asking the model anything. Exit code 1 if something is amiss."""
    import typer

    from memguard.cli.output import print_json, print_table

    checks = {
        "versions": _versions(),
        "model": _model(model, base_url=base_url),
        "embedder": _embedder(embed),
        "store": _store(store, embed=embed),
        "receipts": _receipts(store),
    }
    if as_json:
        print_json({name: {"ok": ok, "found": found} for name, (ok, found) in checks.items()})
    else:
        rows = [(name, "ok" if ok else "amiss", found) for name, (ok, found) in checks.items()]
        print_table("memguard doctor", ("what", "state", "found"), rows)
    if not all(ok for ok, _ in checks.values()):
        raise typer.Exit(1)


def _versions() -> tuple[bool, str]:
    import platform
    from importlib.metadata import version

    names = ("langgraph-memguard", "langgraph", "langchain-core", "langchain-openai", "chromadb")
    found = [f"{name} {version(name)}" for name in names]
    return True, ", ".join([f"Python {platform.python_version()}", *found])


def _model(model: str | None, *, base_url: str | None) -> tuple[bool, str]:
    from memguard.cli.opening import open_model
    from memguard.errors import MemguardError
    from memguard.llm.reach import reach
    from memguard.portal import run_sync

    if model is None:
        return True, "none set: the local writer and judge are used, which are weaker"
    try:
        opened = open_model(model, base_url=base_url)
        return True, run_sync(reach(opened))
    except MemguardError as error:
        return False, error.message


def _embedder(embed: str | None) -> tuple[bool, str]:
    from memguard.errors import MemguardError

    if embed is not None:
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

    if server_address(store) is None and not Path(store).exists():
        return True, f"{store!r} does not exist yet; the first write makes it"
    try:
        with open_store(store, embed=embed) as opened:
            spaces = opened.list_namespaces(limit=1000)
    except MemguardError as error:
        return False, error.message
    return True, f"{store!r} opens; {len(spaces)} namespaces"


def _receipts(store: str) -> tuple[bool, str]:
    from memguard.cli.opening import journal_path, open_journal
    from memguard.cli.output import counts_line
    from memguard.errors import MemguardError
    from memguard.stores.receipts import ReceiptLog

    if not journal_path(store).exists():
        return True, "none yet"
    try:
        with open_journal(store) as journal:
            return True, counts_line(ReceiptLog(journal).count())
    except MemguardError as error:
        return False, error.message
