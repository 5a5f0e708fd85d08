"""`memguard explain CODE`: the page of an error code, also where only the package is installed."""

import re
from pathlib import Path
from typing import Annotated

import typer

from memguard.cli.options import JsonOption
from memguard.cli.output import console, print_json, print_table
from memguard.errors import DOCS_URL, ErrorCode, InvalidInputError, error_url

_HEADING = re.compile(r"^### `([a-z-]+)`\n", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
# Links to other pages of the documentation, with or without an anchor; not links to the web.
_PAGE_LINK = re.compile(r"\]\(((?:[\w-]+/)*[\w-]+)\.md(#[\w-]+)?\)")


def explain(
    code: Annotated[
        str | None,
        typer.Argument(
            help="Error code, for example store-index; omit it to list all codes.", metavar="[CODE]"
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Explain an error code.

    Prints what happened, why, what to do, and an example. Without a code, lists all codes.
    """
    pages = read_pages()
    if code is None:
        summaries = {name: first_sentence(page) for name, page in pages.items()}
        if as_json:
            print_json(summaries)
        else:
            print_table("error codes", ("code", "meaning"), list(summaries.items()))
            console().print("\n`memguard explain CODE` prints the page of a code.")
        return
    name = find_code(code)
    if as_json:
        print_json({"code": name, "url": error_url(name), "page": pages[name]})
    else:
        _print_page(name, pages[name])


def read_pages() -> "dict[ErrorCode, str]":
    """The text of each error code, as Markdown, without its heading."""
    parts = _HEADING.split(_page_file().read_text(encoding="utf-8"))
    # After the introduction, headings and their texts alternate. A text ends at the next section.
    return {
        ErrorCode(name): _COMMENT.sub("", re.split(r"^## ", text, flags=re.MULTILINE)[0]).strip()
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def first_sentence(page: str) -> str:
    """The first sentence of a page, on one line, without Markdown."""
    paragraph = " ".join(page.split("\n\n", maxsplit=1)[0].split())
    sentence = re.split(r"(?<=[.]) ", paragraph, maxsplit=1)[0]
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence).replace("`", "")


def find_code(text: str) -> "ErrorCode":
    """The error code that a person typed, in any case and with `_` or `-`.

    Raises:
        InvalidInputError: If there is no such code; the message names similar ones.
    """
    from difflib import get_close_matches

    codes = [code.value for code in ErrorCode]
    name = text.strip().strip("[]`").lower().replace("_", "-")
    if name in codes:
        return ErrorCode(name)
    # A part of a code is too short to be similar to it, so that is looked for separately.
    similar = get_close_matches(name, codes, cutoff=0.7) or [
        item for item in codes if name and name in item
    ]
    advice = f"did you mean {', '.join(similar[:3])}? " if similar else ""
    msg = f"there is no error code {text!r}: {advice}`memguard explain` lists all codes"
    raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)


def _page_file() -> Path:
    package = Path(__file__).parents[1]
    shipped = package / "errors.md"
    # The wheel carries a copy of the page; in a checkout the page itself is read.
    return shipped if shipped.is_file() else package.parent / "docs" / "errors.md"


def _print_page(code: "ErrorCode", page: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    # Relative links lead nowhere in a terminal.
    absolute = _PAGE_LINK.sub(lambda link: f"]({DOCS_URL}/{link[1]}.html{link[2] or ''})", page)
    out = Console()
    out.print(Markdown(f"# {code}\n\n{absolute}", hyperlinks=out.is_terminal))
    out.print(f"\n{error_url(code)}", highlight=False, soft_wrap=True)
