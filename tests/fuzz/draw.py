"""Random choices, and mutations of what all formats are made of: bytes, texts, cells and trees."""

import functools
import json
import operator
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

    def plain(self):
        """A value of a random type."""
        return self.choice((*[self.choice(PLAIN)] * 4, *[self.number()] * 3, DIGITS, DEEP))

    def times(self, most=3):
        """How often to mutate: mostly once."""
        return self.choices(range(1, most + 1), [4, 2, 1][:most])[0]


def mutate_bytes(draw, content):
    """Flip, cut, repeat or overwrite a part."""
    for _ in range(draw.times()):
        at = draw.randrange(len(content) + 1)
        end = min(at + draw.choice((1, 2, 4, 8, 64, 1000)), len(content))
        part = content[at:end]
        others = (
            bytes([part[0] ^ 1 << draw.randrange(8)]) + part[1:] if part else b"",
            draw.randbytes(len(part)),
            b"",
            part + part,
            bytes([draw.choice((0, 255, 127, 10))]) * len(part),
            draw.randrange(2**64).to_bytes(8, "little")[: len(part)],
        )
        content = content[:at] + draw.choice(others) + content[end:]
        if draw.chance(0.1):
            content = content[:at]
    return content


def mutate_rows(draw, rows):
    """Change cells, rows and columns of a table whose first row is its header."""
    rows = [list(row) for row in rows]
    for _ in range(draw.times()):
        at, other = draw.randrange(len(rows)), draw.randrange(len(rows))
        column = draw.randrange(max(1, min(map(len, rows))))
        kind, value = draw.randrange(14), draw.choice(CELLS)
        if kind <= 6:
            rows[at][column : column + 1] = [value]
        elif kind == 7:
            rows.insert(other, list(rows[at]))
        elif kind == 8 and len(rows) > 1:
            del rows[at]
        elif kind == 9:
            rows[at], rows[other] = rows[other], rows[at]
        elif kind == 10:
            rows[at] = rows[at][:column] if draw.chance(0.5) else [*rows[at], "1"]
        elif kind == 11:
            rows = rows[: draw.choice((1, 2, 3))]
        else:  # a column of one value, twice, or none at all
            times = draw.choice((None, 2, 0))
            for row in rows[1:] if draw.chance(0.3) else rows:
                cells = [value] if times is None else times * row[column : column + 1]
                row[column : column + 1] = cells
    return rows


def mutate_lines(draw, text):
    """Change a text, whose words are the cells of its lines."""
    rows = mutate_rows(draw, [line.split(" ") for line in text.split("\n")])
    return "\n".join(map(" ".join, rows))


def places(tree, path=()):
    """The paths of all values below a tree of dicts and lists."""
    if isinstance(tree, dict | list):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            yield (*path, key)
            yield from places(tree[key], (*path, key))


def mutate_tree(draw, tree):
    """Put a value of the wrong kind at a random place, or remove or repeat one; in place."""
    for _ in range(draw.times()):
        found = list(places(tree))
        if not found:
            return
        # Long lists of numbers would else take nearly all draws.
        depth = draw.randrange(1, max(map(len, found)) + 1)
        *above, key = draw.choice([path for path in found if len(path) <= depth])
        parent = functools.reduce(operator.getitem, above, tree)
        kind, value = draw.randrange(10), parent[key]
        if kind <= 5:
            parent[key] = draw.plain()
        elif kind == 6:
            del parent[key]
        elif kind == 7 and isinstance(parent, dict):
            parent[draw.choice(("unknown", "", "model", "é", "a.b"))] = draw.plain()
        elif isinstance(value, list) and value:
            parent[key] = value[:-1] if draw.chance(0.5) else value * 2
        else:
            parent[key] = [value]


def finish_json(tree):
    """A tree as JSON, its stand-ins replaced by what no writer of JSON would write."""
    text = json.dumps(tree).replace(f'"{DIGITS}"', "7" * 5000)
    return text.replace(f'"{DEEP}"', "[" * 100_000 + "]" * 100_000)
