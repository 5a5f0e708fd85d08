"""Turn the pages, which are written for a reader of the repository, into a site.

It adds a reference of all public names and the pages of the repository's root, replaces Mermaid by
pictures, and points links to source files to the repository. MkDocs calls the functions by their
names, see https://www.mkdocs.org/user-guide/configuration/#hooks.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
INTRODUCTION = "Import these names with `from memguard import NAME`."
ROOT_PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages of the repository's root that are part of the site."""
GOLDEN = ROOT / "tests" / "golden" / "graphs"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
MERMAID = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)
FENCE = re.compile(r"(```.*?```)", re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not files in `docs/`."""
    for source, target in ROOT_PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        text = LINK.sub(_link_from_docs, text)
        files.append(File.generated(config, target, content=text))
    files.append(File.generated(config, "reference.md", content=_reference()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace Mermaid by pictures, and links out of `docs/` by links that work on the site."""
    text = MERMAID.sub(lambda match: _picture(match, page), markdown)
    repository = f"{config.repo_url}/blob/main/"
    return "".join(
        part
        if part.startswith("```")
        else LINK.sub(lambda match: _link(match, page, files, repository=repository), part)
        for part in FENCE.split(text)
    )


def _reference() -> str:
    import memguard  # noqa: PLC0415 - only the site needs it

    modules: dict[str, Any] = vars(memguard)["_MODULES"]
    entries = "\n\n".join(
        _entry(f"memguard.{module}", name) for name, module in sorted(modules.items())
    )
    return f"# Public names\n\n{INTRODUCTION}\n\n{entries}\n"


def _entry(module: str, name: str) -> str:
    """A name where it is defined, with the fields that a settings class inherits."""
    import importlib  # noqa: PLC0415
    import inspect  # noqa: PLC0415

    value = getattr(importlib.import_module(module), name)
    entry = f"::: {getattr(value, '__module__', module)}.{name}"
    fields: list[str] = list(getattr(value, "model_fields", {}))
    if isinstance(value, type) and fields and not inspect.get_annotations(value):
        entry += f"\n    options:\n      inherited_members: {fields}"
    return entry


def _picture(match: re.Match[str], page: Page) -> str:
    """The picture of a golden drawing; other Mermaid stays text."""
    for golden in GOLDEN.glob("*.mmd"):
        if golden.read_text(encoding="utf-8").strip() == match[1].strip():
            picture = f"pictures/{golden.stem}.svg"
            return f"![{golden.stem}]({_relative(picture, page)})"
    return match[0]


def _relative(path: str, page: Page) -> str:
    return posixpath.relpath(path, posixpath.dirname(page.file.src_uri) or ".")


def _link_from_docs(match: re.Match[str]) -> str:
    """A link of a page in the root, as it reads from `docs/`."""
    mark, text, target, anchor = match[1], match[2], match[3], match[4] or ""
    if ":" in target:
        return match[0]
    return f"{mark}[{text}]({posixpath.relpath(target, 'docs')}{anchor})"


def _link(match: re.Match[str], page: Page, files: Files, *, repository: str) -> str:
    """A link within the site as it is; one to another file of the repository leads there."""
    mark, text, target, anchor = match[1], match[2], match[3], match[4] or ""
    if ":" in target:
        return match[0]
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), target))
    if files.get_file_from_path(path) is not None or not path.startswith("../"):
        return match[0]
    outside = path.removeprefix("../")
    if outside in ROOT_PAGES:
        return f"{mark}[{text}]({_relative(ROOT_PAGES[outside], page)}{anchor})"
    return f"{mark}[{text}]({repository}{outside}{anchor})"
