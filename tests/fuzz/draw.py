"""Random choices, and mutations of what all formats are made of: bytes, texts, cells and trees."""

import random

#: What a cell of a table may hold, and rarely does.
CELLS = (
    *("", " ", "nan", "NaN", "inf", "-inf", "1e400", "-1e400", "1e-400", "1E", "1e", "-0", "0"),
    *("-1", "1e9", "1000000000", "1000000000000", "9007199254740993", "9223372036854775808"),
    *("-9223372036854775809", "18446744073709551616", "9" * 400, "0.5", "1.5", "0x10", "1_000"),
    *("٣٤", "१२", "1,5", "1.234,5", "\0", "=1+1", "=cmd|' /C calc'!A0", "@SUM(A1)", "+1", "true"),
    *("<script>alert(1)</script>", "]]>", "[bold]", "{}", "null", "None", "?", "-", "NA", '"'),
    *('a"b', "a\rb", "\u202e", "\ufeff", "é", "😀", "2020-02-30", "2020-01-01", "train", "val"),
    *("2020-01-01T00:00:00+99:99", "y" * 500, "z" * 140_000, "../../x", "id", "label", "x y z"),
)
#: Numbers at the borders of their types, and beyond.
NUMBERS = (
    *(0, -1, 1, 2, 3, 7, 255, 256, 65535, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63),
    *(2**64, -(2**63) - 1, 10**9, 10**12, 10**400, 0.5, -0.0, 1e-320, 1e30, 1e308, 2.5),
    *(float("nan"), float("inf"), float("-inf")),
)
#: Plain values of every type, for places that want one of them.
PLAIN = (
    *(None, True, False, "", "x", "0", "nan", "1e400", "<b>", "\0", "é", "a=b", "../x", "q" * 500),
    *([], [1], [None], ["a", "b"], [[1.0], [2.0]], {}, {"a": 1}, {"": None}, {"format": "x"}),
)
#: Stands in JSON for an integer with more digits than Python reads, and for a deep list.
DIGITS, DEEP = "@digits@", "@deep@"


class Draw(random.Random):
    """A source of random choices that can be repeated by its name."""

    def chance(self, probability):
        return self.random() < probability

    def number(self):
        """A number at the border of something."""
        return self.choice(NUMBERS)

    def integer(self):
        return self.choice([n for n in NUMBERS if isinstance(n, int) and abs(n) <= 2**64])

    def plain(self):
        """A value of a random type."""
        kind = self.randrange(8)
        if kind < 4:
            return self.choice(PLAIN)
        if kind < 7:
            return self.number()
        return self.choice((DIGITS, DEEP))

    def times(self, most=3):
        """How often to mutate: mostly once."""
        return self.choices(range(1, most + 1), [4, 2, 1][:most])[0]


def mutate_bytes(draw, content):
    """Flip, cut, splice, repeat or overwrite a part."""
    content = bytearray(content)
    for _ in range(draw.times()):
        if not content:
            return bytes(content)
        at = draw.randrange(len(content))
        size = min(draw.choice((1, 2, 4, 8, 64, 1000)), len(content) - at)
        kind = draw.randrange(8)
        if kind <= 1:
            content[at] ^= 1 << draw.randrange(8)
        elif kind == 2:
            content[at : at + size] = draw.randbytes(size)
        elif kind == 3:
            del content[at:]
        elif kind == 4:
            del content[at : at + size]
        elif kind == 5:
            to = draw.randrange(len(content) + 1)
            content[to:to] = content[at : at + size]
        elif kind == 6:
            content[at : at + size] = bytes([draw.choice((0, 255, 127, 10))]) * size
        else:
            width = draw.choice((2, 4, 8))
            number = draw.integer() % 2 ** (8 * width)
            content[at : at + width] = number.to_bytes(width, "little")
    return bytes(content)


def mutate_lines(draw, text):
    """Repeat, delete, swap or cut lines, or put a special value in place of a word."""
    lines = text.split("\n")
    for _ in range(draw.times()):
        at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
        kind = draw.randrange(7)
        if kind == 0:
            lines.insert(other, lines[at])
        elif kind == 1 and len(lines) > 1:
            del lines[at]
        elif kind == 2:
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 3:
            lines[at] = lines[at][: draw.randrange(len(lines[at]) + 1)]
        else:
            words = lines[at].split(" ")
            words[draw.randrange(len(words))] = draw.choice(CELLS)
            lines[at] = " ".join(words)
    return "\n".join(lines)


def mutate_rows(draw, rows):
    """Change cells, rows and columns of a table whose first row is its header."""
    rows = [list(row) for row in rows]
    for _ in range(draw.times()):
        at, other = draw.randrange(len(rows)), draw.randrange(len(rows))
        width = max(1, min(map(len, rows)))
        column, to = draw.randrange(width), draw.randrange(width)
        kind = draw.randrange(16)
        if kind <= 6:
            _set(rows[at], column, draw.choice(CELLS))
        elif kind == 7:
            value = draw.choice(CELLS)
            for row in rows[1:]:
                _set(row, column, value)
        elif kind == 8:
            rows.insert(other, list(rows[at]))
        elif kind == 9 and len(rows) > 1:
            del rows[at]
        elif kind == 10:
            rows[at], rows[other] = rows[other], rows[at]
        elif kind == 11:
            for row in rows:
                if column < len(row) and to < len(row):
                    row[column], row[to] = row[to], row[column]
        elif kind == 12:
            for row in rows:
                if width > 1 and column < len(row):
                    del row[column]
        elif kind == 13:
            for row in rows:
                if column < len(row):
                    row.insert(to, row[column])
        elif kind == 14:
            rows[at] = rows[at][:column] if draw.chance(0.5) else [*rows[at], "1"]
        else:
            rows = rows[: draw.choice((1, 2, 3))]
    return rows


def _set(row, column, value):
    if column < len(row):
        row[column] = value


def places(tree, path=()):
    """The paths of all values below a tree of dicts and lists."""
    if isinstance(tree, dict | list):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            yield (*path, key)
            yield from places(tree[key], (*path, key))


def mutate_tree(draw, tree):
    """Put a value of the wrong kind at a random place, or remove, repeat or swap one; in place."""
    for _ in range(draw.times()):
        found = list(places(tree))
        if not found:
            return
        # Long lists of numbers would else take nearly all draws.
        depth = draw.randrange(1, max(map(len, found)) + 1)
        path = draw.choice([path for path in found if len(path) <= depth])
        parent, key = _at(tree, path[:-1]), path[-1]
        kind = draw.randrange(10)
        if kind <= 5:
            parent[key] = draw.plain()
        elif kind == 6:
            del parent[key]
        elif kind == 7:
            value = _at(tree, draw.choice(found))
            parent[key] = value if not isinstance(value, dict | list) else draw.number()
        elif kind == 8 and isinstance(parent, dict):
            parent[draw.choice(("unknown", "", "model", "é", "a.b"))] = draw.plain()
        elif isinstance(parent[key], list) and parent[key]:
            parent[key] = parent[key][:-1] if draw.chance(0.5) else parent[key] * 2
        else:
            parent[key] = [parent[key]]


def _at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def finish_json(text):
    """JSON text with its stand-ins replaced by what no writer of JSON would write."""
    text = text.replace(f'"{DIGITS}"', "7" * 5000)
    return text.replace(f'"{DEEP}"', "[" * 100_000 + "]" * 100_000)
