"""The command line. Modules import what they need when a command runs, so that help is instant."""


def main() -> None:
    """Run the command line; mistakes are explained without a traceback."""
    from memguard.cli.app import run

    run()
