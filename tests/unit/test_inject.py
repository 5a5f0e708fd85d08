"""Where memory stands in a prompt."""

from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage

from memguard.hosts import add_memory, with_memory

CACHED: Any = {"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}


def test_memory_goes_last_in_text_and_in_blocks() -> None:
    assert add_memory(None, "") is None
    assert add_memory(None, "M") == SystemMessage("M")
    assert add_memory(SystemMessage("S"), "M") == SystemMessage("S\n\nM")
    both = add_memory(SystemMessage([CACHED]), "M")
    assert both is not None
    assert both.content == [CACHED, {"type": "text", "text": "\n\nM"}]
    kept = SystemMessage("S")
    assert add_memory(kept, "") is kept


def test_the_prompt_has_one_system_message_with_memory_last() -> None:
    thread = [SystemMessage("From the host."), HumanMessage("Hi")]
    prompt = with_memory(thread, system="Own.", memory="<m>")
    assert [message.text for message in prompt] == ["Own.\n\nFrom the host.\n\n<m>", "Hi"]
    assert with_memory(thread[1:], system="", memory="") == thread[1:]
    assert with_memory(thread, system="", memory="")[0].text == "From the host."
    assert thread[0].text == "From the host."


def test_the_hosts_content_blocks_keep_their_cache_marks() -> None:
    thread = [SystemMessage([CACHED]), HumanMessage("Hi")]
    (system, human) = with_memory(thread, system="Own.", memory="<m>")
    assert system.content == [
        {"type": "text", "text": "Own.\n\n"},
        CACHED,
        {"type": "text", "text": "\n\n<m>"},
    ]
    assert system.text == "Own.\n\nS\n\n<m>"
    assert human is thread[1]
    assert thread[0].content == [CACHED]


def test_no_empty_system_message_is_sent() -> None:
    hello = HumanMessage("Hi")
    for empty in (SystemMessage(""), SystemMessage([])):
        assert with_memory([empty, hello], system="", memory="") == [hello]
        (system, _) = with_memory([empty, hello], system="Own.", memory="<m>")
        assert system.content == "Own.\n\n<m>"
