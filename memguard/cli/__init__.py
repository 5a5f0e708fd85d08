"""The command line."""


def main() -> None:
    """Run the command line. A mistake is explained without a traceback."""
    # Whoever imports one module of this package need not load typer and all commands.
    from memguard.cli.app import run

    run()
