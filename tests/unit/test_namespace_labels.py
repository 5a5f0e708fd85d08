"""Labels for stores that refuse some characters."""

from hypothesis import given
from hypothesis import strategies as st

from memguard.namespaces import decode_label, encode_label


@given(st.text())
def test_labels_come_back(label: str) -> None:
    encoded = encode_label(label)
    assert decode_label(encoded) == label
    assert "." not in encoded
    assert "\x00" not in encoded


@given(st.text(), st.text())
def test_different_labels_stay_different(one: str, other: str) -> None:
    assert (encode_label(one) == encode_label(other)) == (one == other)
