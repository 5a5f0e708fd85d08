"""The rules of the house about words: names, comments and the glossary."""

import ast
import re
import tokenize
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "memguard"

VAGUE_NAMES = set(
    re.findall(
        r"\w+",
        """
    each found given said own place held known kept seen left made most least beside mend mended
    shown asked told taken put lane lanes mortal rung panel began begun
    """,
    )
)
"""Participles, pronouns and home-made words that do not say what a value is."""

MAX_VAGUE_SHARE = 0.003
"""Of all names that are bound; it leaves room for an `each` in a comprehension of two lines."""

MIN_COMMENTS = 3
"""Comments in 100 lines, over the whole package."""

DIRECTIVE = re.compile(
    r"#\s*(?:noqa|type|fmt|pyright)\b[:\s]*(?:\w+\[[\w, ]*\]|(?:[\w, ]+=\w+)+|[A-Z]+\d+(?:, )?)*"
)
"""A note to a tool; what stands after it is a comment."""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def trees() -> dict[str, ast.Module]:
    files = sorted(PACKAGE.rglob("*.py"))
    return {name_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in files}


def bound_names(tree: ast.Module) -> list[str]:
    """Variables that are assigned, and parameters."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        elif isinstance(node, ast.arg):
            names.append(node.arg)
    return names


def test_names_say_what_a_value_is() -> None:
    names = {file: Counter(bound_names(tree)) for file, tree in trees().items()}
    vague = {
        file: {name: count for name, count in counts.items() if name in VAGUE_NAMES}
        for file, counts in names.items()
    }
    offenders = {file: counts for file, counts in vague.items() if counts}
    total = sum(counts.total() for counts in names.values())
    share = sum(sum(counts.values()) for counts in offenders.values()) / total
    assert share <= MAX_VAGUE_SHARE, f"{share:.2%} of all names are vague: {offenders}"


def defined_types(tree: ast.Module) -> list[str]:
    """Classes, and the names of type aliases."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
            names.append(ast.unparse(node.target))
        elif isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("Literal["):
            names += [ast.unparse(target) for target in node.targets]
    return names


def test_no_two_types_have_one_name() -> None:
    files: dict[str, list[str]] = defaultdict(list)
    for file, tree in trees().items():
        for name in defined_types(tree):
            files[name].append(file)
    offenders = {name: where for name, where in files.items() if len(where) > 1}
    assert not offenders, offenders


def comments(path: Path) -> list[str]:
    with path.open("rb") as file:
        tokens = [
            token.string
            for token in tokenize.tokenize(file.readline)
            if token.type == tokenize.COMMENT
        ]
    return [text for text in tokens if re.search(r"\w", DIRECTIVE.sub("", text))]


def test_comments_say_why_where_it_is_hard() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    counts = {path: len(comments(path)) for path in files}
    rate = 100 * sum(counts.values()) / sum(lines.values())
    # The longest files without a comment are the first places to look.
    bare = sorted((path for path in files if not counts[path]), key=lambda path: -lines[path])
    longest = {name_of(path): lines[path] for path in bare[:20]}
    assert rate >= MIN_COMMENTS, f"{rate:.2f} comments in 100 lines; without any: {longest}"


def test_the_glossary_has_every_term_once() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    entries = re.findall(r"^\| ([^|]+?) \|", page, re.MULTILINE)
    terms = Counter(
        term.strip(" `*").casefold()
        for entry in entries
        for term in entry.split(",")
        if "-" * 3 not in term and term != "term"
    )
    assert terms
    assert [term for term, count in terms.items() if count > 1] == []
