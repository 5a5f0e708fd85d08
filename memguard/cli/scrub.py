"""`memguard scrub`: count the secrets in a store, and take them out."""

from typing import Annotated

import typer

from memguard.cli import options
from memguard.cli.opening import create_journal, open_store
from memguard.cli.output import console, print_json, print_table


def scrub(
    store: options.StoreOption = "memory",
    embed: options.EmbedOption = None,
    namespace: options.NamespaceOption = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Redact; without it, secrets are only counted.")
    ] = False,
    personal: Annotated[
        bool, typer.Option("--personal", help="Include personal data, such as phone numbers.")
    ] = False,
    undo: Annotated[
        str | None, typer.Option("--undo", metavar="RUN", help="Restore what a run redacted.")
    ] = None,
    actor: options.ActorOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Count the secrets in stored memories, or redact them.

    The originals go into quarantine, and `--undo` restores them.
    """
    from dataclasses import asdict

    from memguard.journal.scrub import scrub as scrub_store
    from memguard.journal.scrub import undo_scrub
    from memguard.portal import run_sync

    who = options.actor_of(actor)
    with (
        open_store(store, embed=embed, create=False) as opened,
        create_journal(store) as journal,
    ):
        if undo is not None:
            restored = run_sync(undo_scrub(journal, opened, undo, actor=who))
            if as_json:
                print_json({"restored": restored})
            else:
                console().print(f"restored records: {len(restored)}")
            return
        report = run_sync(
            scrub_store(
                journal,
                opened,
                namespace=tuple(namespace or ()),
                screen="personal" if personal else "secrets",
                apply=apply,
                actor=who,
            )
        )
    if as_json:
        print_json(asdict(report))
        return
    rows = [(kind, str(count)) for kind, count in sorted(report.kinds.items())]
    title = f"{report.records} of {report.examined} records contain sensitive text"
    print_table(title, ("kind", "number"), rows)
    if report.run_id:
        console().print(f"redacted; to restore: memguard scrub --undo {report.run_id}")
    elif report.records:
        console().print("nothing was changed; --apply redacts them")
