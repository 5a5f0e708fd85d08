"""The command line. A module imports what it needs when its command runs, so help is instant."""


def main() -> None:
    """Run the command line. A mistake is explained without a traceback."""
    from memguard.cli.app import run

    run()
