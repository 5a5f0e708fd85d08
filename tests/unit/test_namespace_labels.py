"""Labels for stores that refuse some characters."""

from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from memguard.namespaces import encode_label


@given(st.text())
def test_labels_come_back(label: str) -> None:
    encoded = encode_label(label)
    assert unquote(encoded) == label
    assert "." not in encoded
    assert "\x00" not in encoded


@given(st.text(), st.text())
def test_different_labels_stay_different(one: str, other: str) -> None:
    assert (encode_label(one) == encode_label(other)) == (one == other)
