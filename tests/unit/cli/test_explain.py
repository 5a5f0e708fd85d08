"""`memguard explain`, `--version`, and how an error leads to its page."""

import json
import re
import sys
from collections.abc import Callable

import pytest

import memguard
from memguard.cli import main
from memguard.cli.explain import find_code, first_sentence, read_pages
from memguard.errors import DOCS_URL, ErrorCode, InvalidInputError

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("COLUMNS", "200")

    def run_command(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["memguard", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        assert isinstance(code, int)
        out, err = capsys.readouterr()
        return code, out, err

    return run_command


def test_every_page_says_what_happened_why_what_to_do_and_shows_it() -> None:
    pages = read_pages()
    assert list(pages) == list(ErrorCode)
    for code, page in pages.items():
        headline, why, remedy = re.split(r"\*\*(?:Why|What to do):\*\* ", page)
        assert headline.strip().endswith("."), code
        assert len(why.split()) > 5, code
        assert re.search(r"^```(python|bash|text)\n.+?^```$", remedy, re.MULTILINE | re.DOTALL), (
            code
        )
        assert "<!--" not in page, code


def test_a_page_is_printed_for_a_person(run: Run) -> None:
    code, out, _ = run("explain", "model-missing")
    assert code == 0
    assert "Why: memguard has no default model" in out
    assert 'create_write_guard("openai:gpt-5-mini")' in out
    # A relative link of the page leads to the site, and the page itself is named last.
    assert f"{DOCS_URL}/methods/conmem.html" in out
    assert out.strip().endswith(f"{DOCS_URL}/errors.html#model-missing")


def test_a_page_is_printed_for_a_program(run: Run) -> None:
    code, out, _ = run("explain", "STORE_INDEX", "--json")
    assert code == 0
    body = json.loads(out)
    assert body["code"] == "store-index"
    assert body["url"] == f"{DOCS_URL}/errors.html#store-index"
    assert body["page"] == read_pages()[ErrorCode.STORE_INDEX]


def test_all_codes_are_listed_with_their_first_sentence(run: Run) -> None:
    code, out, _ = run("explain")
    assert code == 0
    assert re.search(r"store-index +Memories were requested by similarity from a store", out)
    summaries = json.loads(run("explain", "--json")[1])
    assert list(summaries) == [error.value for error in ErrorCode]
    assert all(text.endswith(".") and "`" not in text for text in summaries.values())


@pytest.mark.parametrize(
    ("text", "similar"),
    [
        ("store-indx", "store-index"),
        ("stroe_locked", "store-locked"),
        ("logprobs", "model-logprobs"),
    ],
)
def test_an_unknown_code_names_similar_ones(run: Run, text: str, similar: str) -> None:
    code, _, err = run("explain", text)
    assert code == 2
    assert f"{text!r}: did you mean {similar}" in err
    assert "`memguard explain` lists all codes" in err


def test_a_code_that_resembles_nothing_leads_to_the_list() -> None:
    with pytest.raises(InvalidInputError) as caught:
        find_code("xyz")
    assert "did you mean" not in caught.value.message
    with pytest.raises(InvalidInputError):
        find_code("")


@pytest.mark.parametrize("text", ["store-index", "STORE_INDEX", "[store-index]", " Store-Index "])
def test_a_code_may_be_copied_from_a_message(text: str) -> None:
    assert find_code(text) is ErrorCode.STORE_INDEX


def test_a_first_sentence_is_plain_text() -> None:
    page = "A write to a\n[guarded store](x.md) with\n`raise` fails. More.\n\nNext paragraph."
    assert first_sentence(page) == "A write to a guarded store with raise fails."


def test_an_error_says_how_to_get_its_page(run: Run) -> None:
    code, _, err = run("receipts", "list", "--store", "no/such/folder")
    assert code == 2
    assert "for details: memguard explain store-path" in err
    assert f"{DOCS_URL}/errors.html#store-path" in err
    body = json.loads(run("receipts", "list", "--store", "no/such/folder", "--json")[1])
    assert body["error"]["url"] == f"{DOCS_URL}/errors.html#store-path"


def test_an_exception_carries_code_and_address() -> None:
    error = InvalidInputError("the value is 3", code=ErrorCode.INPUT_INVALID)
    assert str(error) == "the value is 3 [input-invalid; see `memguard explain input-invalid`]"
    assert (error.message, error.code) == ("the value is 3", "input-invalid")
    assert error.url == f"{DOCS_URL}/errors.html#input-invalid"


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version") == (0, f"memguard {memguard.__version__}\n", "")


def test_the_help_explains_exit_codes_and_every_command(run: Run) -> None:
    _, out, _ = run("--help")
    assert "Exit codes: 0 success; 1 the run failed" in out
    listed = re.findall(r"^  ([a-z]+)  +(\S.*)$", out.split("Commands:")[1], re.MULTILINE)
    assert {"write", "explain", "doctor", "receipts", "quarantine"} <= {name for name, _ in listed}
    # A first sentence that does not fit is cut by typer, and nobody can read the rest.
    assert {name for name, text in listed if text.endswith("...")} <= {"graph"}
