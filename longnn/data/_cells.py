"""What one cell of text says: a gap, a number however it is written, a spelling of a word.

The one place that decides it, for features, labels, splits and weights, in memory and on disk.
Knows nothing of tables. A column is read as one: its cells share unit and separators, or are words.
"""

from typing import Any

import pyarrow as pa

from longnn._base.late import Late

pc = Late("pyarrow.compute")

#: Words for a value that is not known, in lower case, besides an empty cell.
MISSING = ("na", "n/a", "nan", "+nan", "-nan", "null", "none", r"\n", "?", "-", ".")
#: Words of truth; single letters count where the column holds such words alone.
TRUTH = {"true": "1", "yes": "1", "false": "0", "no": "0"}
_LETTERS = ({"y": "yes", "n": "no"}, {"t": "true", "f": "false"})
_SAMPLE = 50  # cells that show that a column holds words
_SIGN = "(?:[$€£¥₹%]|USD|EUR|GBP|JPY|CNY|INR|CHF|CAD|AUD|SEK|NOK|DKK|PLN|BRL|MXN|KRW)"
_THIN = " \u00a0\u2009\u202f"
_BETWEEN = f"[{_THIN}'\u2019]"  # thousands, as in 1 234 and 1'234
_GROUPED = rf"[1-9][0-9]{{0,2}}(?:{_BETWEEN}[0-9]{{3}})+(?:[.,][0-9]*)?"
_BARE = r"[0-9.,]*[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?"
_AMOUNT = rf"({_SIGN}?)[{_THIN}]*([-+]?(?:{_BARE}|{_GROUPED}))[{_THIN}]*({_SIGN}?)"
_UNIT = rf"^([-+]?)[{_THIN}]*{_AMOUNT}$"
_LOSS = r"^\((.*)\)$"  # accountants write -4 as (4)
_UNIT_OR_LOSS = rf"{_UNIT}|^\({_AMOUNT}\)$"
_LISTED = r"^\([0-9.,]*\)$"  # where all cells are (1), (2), ..., they count something
_POINT = r"^[-+]?(\d+\.?\d*|\.\d+|[1-9]\d{0,2}(,\d{3})+(\.\d*)?)([eE][-+]?\d+)?$"
_COMMA = r"^[-+]?(\d*,?\d+|\d+,|[1-9]\d{0,2}(\.\d{3})+(,\d*)?)([eE][-+]?\d+)?$"


def is_number(text: str) -> bool:
    """Whether a text is a number as Arrow reads it, perhaps with a plus before it.

    >>> is_number("1e3"), is_number("1_000"), is_number("three"), is_number("+4")
    (True, False, False, True)
    """
    plain = text.strip()
    plain = plain[1:] if plain[:1] == "+" and plain[1:2] in (*"0123456789.",) else plain
    try:
        pc.cast(pa.scalar(plain), pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def plain_numbers(cells: Any, decimal: str = "") -> tuple[Any, str]:
    """Cells that are numbers with one unit and with separators, as plain numbers; and an example.

    Args:
        cells: trimmed texts, null for a gap.
        decimal: what is before decimals where that alone is open, as in 1,234: a point, a comma, or
            nothing if it is not known.

    Returns:
        The cells, and one that was changed. The cells as they are, and nothing, if they are plain
        already, are no numbers, or do not agree.

    >>> plain_numbers(pa.array(["$3,400", None, "$12"]))[0].to_pylist()
    ['3400', None, '12']
    >>> plain_numbers(pa.array(["7", "1.234,5"]))[0].to_pylist()
    ['7', '1234.5']
    >>> plain_numbers(pa.array(["7 €", "1 234,5 €"]))[0].to_pylist()
    ['7', '1234.5']
    >>> plain_numbers(pa.array(["12 USD", "(4 USD)"]))[0].to_pylist()
    ['12', '-4']
    """
    if not are_numbers(cells):
        return cells, ""
    signed = pc.replace_substring_regex(cells, _LOSS, r"-\1")
    units = pc.unique(pc.replace_substring_regex(signed.drop_null(), _UNIT, r"\2\4"))
    if len(units) != 1:
        return cells, ""
    bare = pc.replace_substring_regex(signed, _UNIT, r"\1\3")
    bare = pc.replace_substring_regex(bare, _BETWEEN, "")
    marks = [mark for mark, form in ((".", _POINT), (",", _COMMA)) if _all(bare.drop_null(), form)]
    if len(marks) > 1:
        decimal = decimal or ("." if units[0].as_py() in ("$", "£", "USD", "GBP") else "")
        marks = [decimal] if pc.any(pc.match_substring(bare, ",")).as_py() else ["."]
    mark = next(iter(marks), "")
    if not mark:
        return cells, ""
    bare = pc.replace_substring(bare, "," if mark == "." else ".", "")
    bare = pc.replace_substring(bare, ",", ".")
    changed = pc.filter(cells, pc.not_equal(cells, bare))
    return (bare, changed[0].as_py()) if len(changed) else (cells, "")


def are_numbers(cells: Any) -> bool:
    """Whether all cells are numbers, perhaps with units or separators, which may not agree."""
    known = cells.drop_null()
    if not len(known) or not all(_all(k, _UNIT_OR_LOSS) for k in (known[:_SAMPLE], known)):
        return False
    return not _all(known, _LISTED)


def truth_words(words: set[str]) -> dict[str, str]:
    """The value, 1 or 0, of each word in lower case that may stand beside these; else nothing.

    >>> truth_words({"y", "no"})["y"], truth_words({"t", "n"}), truth_words({"y", "m"})
    ('1', {}, {})
    """
    for letters in _LETTERS:
        allowed = TRUTH | {letter: TRUTH[word] for letter, word in letters.items()}
        if words <= set(allowed):
            return allowed
    return {}


def fold(cells: Any) -> tuple[Any, dict[str, str]]:
    """Cells with one spelling of each word, the most frequent, and which were changed to which.

    Spellings differ in case, or mean the same truth value.

    >>> fold(pa.array(["Rome", "rome", None, "Rome"]))[1], fold(pa.array(["yes", "Y", "Y"]))[1]
    ({'rome': 'Rome'}, {'yes': 'Y'})
    """
    encoded = cells.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    lower = [word.lower() for word in words]
    meaning = truth_words(set(lower)) or {}
    groups: dict[str, list[int]] = {}
    for place, word in enumerate(lower):
        groups.setdefault(meaning.get(word, word), []).append(place)
    if len(groups) == len(words):
        return cells, {}
    counts = pc.value_counts(encoded.indices.drop_null())
    size = dict(zip(*(counts.field(k).to_pylist() for k in (0, 1)), strict=True))
    spelling = list(words)
    for places in groups.values():
        best = min(places, key=lambda place: (-size[place], words[place]))
        for place in places:
            spelling[place] = words[best]
    changed = {old: new for old, new in zip(words, spelling, strict=True) if old != new}
    return pa.array(spelling, pa.string()).take(encoded.indices), changed


def _all(cells: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(cells, pattern)).as_py())
