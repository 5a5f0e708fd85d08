"""Words that tell a safety constraint or a preference, for when no verdict is usable.

Where an adjudicator failed, these two kinds fail open (SPEC section 7), so something must tell them
from the rest. The words lean to safety: a memory taken for one too many is shown as context, a
memory missed is not shown at all.
"""

import re

from memguard.schema.units import Kind, Unit

_SAFETY = re.compile(
    r"(?:\ball?[eé]rg|anaphyla|\bepi-?pen|adrenaline pen|autoinjector|intoleran|unverträglich|"
    r"\bco?eliac|zöliakie|\bcelía|\basthma|\basma\b|diab[eè]t|epilep|insulin|\bh[ae]emophil|"
    r"medication|medicament|médicament|medikament|\bprescri|\bblood thinner|\bwarfarin|"
    r"\btakes? \d+ ?mg|pregnan|schwanger|enceinte|embarazad|wheelchair|rollstuhl|fauteuil roulant|"
    r"silla de ruedas|\bblind\b|colou?r-?blind|low vision|screen ?reader|\bdeaf\b|"
    r"hearing (?:aid|loss)|"
    r"hard of hearing|dyslexi|legasthen|pacemaker|schrittmacher|seizure|mobility (?:aid|issue)|"
    r"过敏|過敏|アレルギー|알레르기|аллерг|糖尿病|轮椅|車椅子|哮喘|喘息)",
    re.IGNORECASE,
)
_SAFETY_CORES = (
    "alerg", "allerg", "alérg", "allérg", "anaphyla", "epipen", "epi-pen", "adrenaline pen",
    "autoinjector", "intoleran", "unverträglich", "eliac", "zöliakie", "celía", "asthma", "asma",
    "diabet", "diabèt", "epilep", "insulin", "emophil", "medica", "médica", "medika", "prescri",
    "thinner", "warfarin", "take", "pregnan", "schwanger", "enceinte", "embarazad", "wheelchair",
    "rollstuhl", "fauteuil", "ruedas", "blind", "low vision", "screen", "deaf", "hearing",
    "dyslexi", "legasthen", "pacemaker", "schrittmacher", "seizure", "mobility", "过敏", "過敏",
    "アレルギー", "알레르기", "аллерг", "糖尿病", "轮椅", "車椅子", "哮喘", "喘息",
)  # fmt: skip
"""What a text must hold for the pattern to fit. Looking for these first is fifty times faster, and
recall looks at every memory near to its query for safety."""
_PREFERENCE = re.compile(
    r"(?:\bprefer|favou?rite|\b(?:dis)?likes?\b|\bloves?\b|\bhates?\b|\benjoys?\b|"
    r"\bcan(?:'|no)t stand\b|\bwould rather\b|\binterested in\b|\bfan of\b|"
    r"bevorzug|\bmag\b|liebling|am liebsten|\bpréf[eè]r|\baime\b|\bdéteste\b|"
    r"\bprefiere|\ble (?:gusta|encanta)|\bodia\b|"
    r"喜欢|喜歡|偏好|好き|嫌い|предпочита|любит)",
    re.IGNORECASE,
)


def looks_like_safety(text: str) -> bool:
    """Whether words of the text are those of allergies, medication, disability or access."""
    folded = text.casefold()
    if not any(core in folded for core in _SAFETY_CORES):
        return False
    return _SAFETY.search(text) is not None


def looks_like_preference(text: str) -> bool:
    """Whether words of the text are those of likes and dislikes."""
    return _PREFERENCE.search(text) is not None


def kind_without_verdict(unit: Unit) -> Kind | None:
    """What a unit is, as far as its decomposition and its words tell; safety comes first."""
    if unit.kind == "safety" or looks_like_safety(unit.text):
        return "safety"
    if unit.kind is not None:
        return unit.kind
    return "preference" if looks_like_preference(unit.text) else None
