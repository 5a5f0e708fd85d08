"""What the pages say of ConMem's defaults and its graph is so."""

import re
from pathlib import Path

from memguard.methods.conmem.config import CONMEM_PRESETS, STAGES, ConMem
from memguard.methods.conmem.models import PROMPTS

ROOT = Path(__file__).parents[2]
CONFIG = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "methods" / "conmem.md").read_text(encoding="utf-8")
SECTION = CONFIG.split("## `ConMem`\n")[1].split("\n## ")[0]
ROW = re.compile(r"^\| `(\w+)` \| `([^`]*)` \|(?: ([\d.]+) \|$)?", re.MULTILINE)


def test_every_default_is_stated() -> None:
    settings = SECTION.partition("### `weights`")[0]
    stated = {name: value for name, value, _ in ROW.findall(settings)}
    dumped = ConMem().model_dump()
    actual = {n: str(v) for n, v in dumped.items() if n not in {"weights", "stages"}}
    assert stated == actual


def test_every_weight_is_stated_for_both_presets() -> None:
    weights = SECTION.partition("### `weights`")[2].partition("### `stages`")[0]
    stated = {name: (default, paper) for name, default, paper in ROW.findall(weights)}
    default, paper = (CONMEM_PRESETS[n].weights.model_dump() for n in ("default", "paper"))
    assert stated == {name: (str(default[name]), str(paper[name])) for name in default}


def test_the_settings_of_every_stage_are_stated() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| ([\d.]+) \| (\d+) \| (\d+) \| (\w+) \|$",
        SECTION.partition("### `stages`")[2],
        re.MULTILINE,
    )
    actual = [(s, *map(str, getattr(ConMem().stages, s).model_dump().values())) for s in STAGES]
    assert rows == actual


def test_the_drawing_is_the_golden_one() -> None:
    drawn = re.findall(r"^```mermaid\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    golden = (ROOT / "tests" / "golden" / "graphs" / "conmem.mmd").read_text(encoding="utf-8")
    assert [each.strip() for each in drawn] == [golden.strip()]


def test_every_prompt_and_stage_is_named_on_the_page() -> None:
    for name in (*PROMPTS, *STAGES):
        assert f"`{name}`" in PAGE, name
