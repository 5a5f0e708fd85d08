"""Progress bars: turns and candidates of a write, steps of a ConMem case, bytes of a pull."""

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

if TYPE_CHECKING:
    from memguard.llm.download import PullProgress


class _Bars(Progress):
    """Bars that are drawn inside a `with` block."""

    def __init__(self, *, quiet: bool, **look: Any) -> None:
        # On standard error, so that the result can be piped.
        console = Console(stderr=True)
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[detail]}"),
            console=console,
            # In a file, every step would be a line of its own.
            disable=quiet or not console.is_terminal,
            **look,
        )


class WriteProgress(_Bars):
    """Follows the events of a write; `quiet` draws nothing."""

    def __init__(self, *, turns: int, quiet: bool) -> None:
        """Start with the number of turns to read."""
        super().__init__(quiet=quiet)
        self._counts: dict[str, int] = {}
        self._turn_bar = self.add_task("turns", total=turns, detail="")
        self._candidate_bar = self.add_task("candidates", total=0, detail="")

    def note(self, event: dict[str, Any]) -> None:
        """Update the bars from one event of the guard."""
        match event.get("step"):
            case "extracted":
                self.advance(self._turn_bar, event["turns"])
            case "screened":
                # Sessions share this bar and are screened one after another, so the total grows.
                total = self.tasks[self._candidate_bar].total or 0
                self.update(self._candidate_bar, total=total + event["to_gate"])
            case "gated":
                outcome = event["outcome"]
                self._counts[outcome] = self._counts.get(outcome, 0) + 1
                detail = ", ".join(f"{count} {name}" for name, count in self._counts.items())
                self.update(self._candidate_bar, advance=1, detail=detail)
            case _:
                pass

    def finish(self) -> None:
        """Mark all turns as read; an earlier run may have read some of them."""
        task = self.tasks[self._turn_bar]
        self.update(self._turn_bar, completed=task.total)


class CaseProgress(_Bars):
    """Follows the events of one ConMem case."""

    STEPS = 16
    """Steps of a case without repairs: generating and validating probes, four for each of the three
    probes, CMTE and the decision."""

    def __init__(self, *, quiet: bool) -> None:
        """Start without a finished step."""
        super().__init__(quiet=quiet, transient=True)
        self._bar = self.add_task("steps", total=self.STEPS, detail="")
        self._done = 0

    def note(self, event: dict[str, Any]) -> None:
        """Update the bar from one event of the case."""
        if event.get("state") == "started":
            probe = f" of the {event['role']} probe" if "role" in event else ""
            self.update(self._bar, detail=f"{event['step'].replace('_', ' ')}{probe}")
        elif event.get("state") == "done":
            self._done += 1
            # Repairs add steps that the total does not have; the bar must not pass its end.
            self.update(self._bar, completed=self._done, total=max(self.STEPS, self._done))


class PullBar(Progress):
    """Follows the bytes of a pull; `quiet` draws nothing."""

    def __init__(self, name: str, *, quiet: bool) -> None:
        """Start without a size, which the first step tells."""
        console = Console(stderr=True)
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=quiet or not console.is_terminal,
        )
        self._name = name
        self._step = ""
        self._bar = self.add_task(name, total=None)

    def note(self, progress: "PullProgress") -> None:
        """Update the bar."""
        if progress.step != self._step:
            # Hashing is far faster than a network: its speed must not enter the estimate.
            self.reset(self._bar, description=f"{progress.step} {self._name}", total=progress.total)
            self._step = progress.step
        self.update(self._bar, completed=progress.done, total=progress.total)
