"""What the site does to the pages: a reference of all public names, pictures, links that lead on.

The pages are written for a reader of the repository; here they become a site. MkDocs calls the
functions by their names, see https://www.mkdocs.org/user-guide/configuration/#hooks.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
BESIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages of the repository's root that the site has too."""
INTRODUCTION = "Import these names with `from memguard import NAME`."
GOLDEN = ROOT / "tests" / "golden" / "graphs"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
MERMAID = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)
FENCE = re.compile(r"(```.*?```)", re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that no file in `docs/` holds."""
    for source, target in BESIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        # From the root's point of view to that of `docs/`.
        text = LINK.sub(_moved, text)
        files.append(File.generated(config, target, content=text))
    files.append(File.generated(config, "reference.md", content=_reference()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Draw what is Mermaid, and lead links out of `docs/` to where they lead on the site."""
    del config
    shown = MERMAID.sub(lambda found: _picture(found, page), markdown)
    parts = FENCE.split(shown)
    return "".join(
        part if part.startswith("```") else LINK.sub(lambda f: _link(f, page, files), part)
        for part in parts
    )


def _reference() -> str:
    import memguard  # noqa: PLC0415 - only the site needs it

    homes: dict[str, Any] = vars(memguard)["_HOME"]
    entries = "\n\n".join(
        f"::: {_defined(f'memguard.{home}', name)}" for name, home in sorted(homes.items())
    )
    return f"# Public names\n\n{INTRODUCTION}\n\n{entries}\n"


def _defined(module: str, name: str) -> str:
    """Where a name is defined, past packages that only pass it on."""
    import importlib  # noqa: PLC0415

    value = getattr(importlib.import_module(module), name)
    return f"{getattr(value, '__module__', module)}.{name}"


def _picture(found: re.Match[str], page: Page) -> str:
    """The picture of a golden drawing; other Mermaid stays text."""
    for golden in GOLDEN.glob("*.mmd"):
        if golden.read_text(encoding="utf-8").strip() == found[1].strip():
            picture = f"pictures/{golden.stem}.svg"
            return f"![{golden.stem}]({_relative(picture, page)})"
    return found[0]


def _relative(path: str, page: Page) -> str:
    return posixpath.relpath(path, posixpath.dirname(page.file.src_uri) or ".")


def _moved(found: re.Match[str]) -> str:
    mark, text, target, anchor = found[1], found[2], found[3], found[4] or ""
    if ":" in target:
        return found[0]
    moved = posixpath.relpath(target, "docs")
    return f"{mark}[{text}]({moved}{anchor})"


def _link(found: re.Match[str], page: Page, files: Files) -> str:
    """A link within the site as it is; to another file of the repository its text alone."""
    mark, text, target, anchor = found[1], found[2], found[3], found[4] or ""
    if ":" in target:
        return found[0]
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), target))
    if files.get_file_from_path(path) is not None:
        return found[0]
    beside = BESIDE.get(path.removeprefix("../"))
    if path.startswith("../") and beside is not None:
        return f"{mark}[{text}]({_relative(beside, page)}{anchor})"
    return text if path.startswith("../") else found[0]
