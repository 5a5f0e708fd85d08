"""Progress bars: turns and candidates of a write, and steps of a ConMem case."""

from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn


class _Bars:
    """Bars that are drawn inside a `with` block."""

    def __init__(self, *, quiet: bool, **look: Any) -> None:
        # On standard error, so that the result can be piped.
        console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[detail]}"),
            console=console,
            # In a file, every step would be a line of its own.
            disable=quiet or not console.is_terminal,
            **look,
        )

    def __enter__(self) -> Self:
        """Start to draw."""
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop to draw."""
        self._bars.stop()


class WriteProgress(_Bars):
    """Follows the events of a write; `quiet` draws nothing."""

    def __init__(self, *, turns: int, quiet: bool) -> None:
        """Start with the number of turns to read."""
        super().__init__(quiet=quiet)
        self._counts: dict[str, int] = {}
        self._turns = self._bars.add_task("turns", total=turns, detail="")
        self._candidates = self._bars.add_task("candidates", total=0, detail="")

    def note(self, event: dict[str, Any]) -> None:
        """Update the bars from one event of the guard."""
        match event.get("step"):
            case "extracted":
                self._bars.advance(self._turns, event["turns"])
            case "screened":
                # Sessions share this bar and are screened one after another, so the total grows.
                total = self._bars.tasks[self._candidates].total or 0
                self._bars.update(self._candidates, total=total + event["to_gate"])
            case "gated":
                outcome = event["outcome"]
                self._counts[outcome] = self._counts.get(outcome, 0) + 1
                detail = ", ".join(f"{count} {name}" for name, count in self._counts.items())
                self._bars.update(self._candidates, advance=1, detail=detail)
            case _:
                pass

    def finish(self) -> None:
        """Mark all turns as read; an earlier run may have read some of them."""
        task = self._bars.tasks[self._turns]
        self._bars.update(self._turns, completed=task.total)


class CaseProgress(_Bars):
    """Follows the events of one ConMem case."""

    STEPS = 16
    """Steps of a case without repairs: generating and validating probes, four for each of the three
    probes, CMTE and the decision."""

    def __init__(self, *, quiet: bool) -> None:
        """Start without a finished step."""
        super().__init__(quiet=quiet, transient=True)
        self._task = self._bars.add_task("steps", total=self.STEPS, detail="")
        self._done = 0

    def note(self, event: dict[str, Any]) -> None:
        """Update the bar from one event of the case."""
        if event.get("state") == "started":
            probe = f" of the {event['role']} probe" if "role" in event else ""
            self._bars.update(self._task, detail=f"{event['step'].replace('_', ' ')}{probe}")
        elif event.get("state") == "done":
            self._done += 1
            # Repairs add steps that the total does not have; the bar must not pass its end.
            self._bars.update(self._task, completed=self._done, total=max(self.STEPS, self._done))
