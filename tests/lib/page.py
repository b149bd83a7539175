# SPDX-License-Identifier: MIT
"""tests/lib/page.py PAGE JSON - compares the page of "fiberize bench --report" with its JSON.

Prints what differs, a line each, and nothing if all is well.
"""
import html.parser
import json
import re
import sys


class Page(html.parser.HTMLParser):
    """The text of cells, of charts and of what has an id."""

    def __init__(self, text):
        super().__init__()
        self.cells, self.texts, self.ids, self.outside = {}, [], {}, []
        self.case, self.into, self.tables = None, None, 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        for name in "src", "href", "xlink:href", "data", "srcset", "action":
            value = attrs.get(name) or ""
            if value and not value.startswith("#"):
                self.outside.append(f"{tag} {name}={value}")
        if tag in ("script", "link", "iframe", "object", "embed"):
            self.outside.append(tag)
        if tag == "table":
            self.case = int(attrs["data-case"])
            self.tables += 1
        if "data-figure" in attrs:
            self.into = (self.case, attrs["data-figure"], attrs["data-side"])
            self.cells[self.into] = ""
        elif tag == "text":
            self.texts.append("")
        if "id" in attrs and tag != "g":
            self.ids[attrs["id"]] = attrs.get("class") or ""

    def handle_data(self, data):
        if self.lasttag in ("text", "tspan") and self.texts:
            self.texts[-1] += data
        if self.into:
            self.cells[self.into] += data

    def handle_endtag(self, tag):
        if tag == "td":
            self.into = None


def near(shown, value):
    """Is the number, as shown, the value, rounded to what is shown?"""
    digits = len(shown.partition(".")[2])
    return abs(float(shown) - value) <= 0.5000001 * 10 ** -digits + 1e-9 * abs(value)


def main():
    """Print what differs."""
    with open(sys.argv[1], encoding="utf-8") as f:
        text = f.read()
    with open(sys.argv[2], encoding="utf-8") as f:
        wanted = json.load(f)
    page = Page(text)
    labels = [t.strip() for t in page.texts]
    for line in page.outside:
        print("refers to something outside:", line)
    if re.search(r"url\((?!'?#)|@import", text):
        print("refers to something outside: in a style")
    if page.ids.get("headline") != wanted["verdict"]:
        print("the verdict is", page.ids.get("headline"), "instead of", wanted["verdict"])
    if page.tables != len(wanted["summary"]):
        print(page.tables, "tables instead of", len(wanted["summary"]))
    if not page.cells or not labels:
        print("no cells or no charts")
    for (case, figure, side), cell in page.cells.items():
        value = wanted["summary"][case - 1][side].get(figure)
        numbers = re.findall(r"[\d.]+\d|\d", cell.replace("..", " "))
        if value is None:
            if cell != "-":
                print(case, figure, side, "is", cell, "on the page only")
        elif len(numbers) != 3 or not all(
                near(n, value[k]) for n, k in zip(numbers, ("median", "min", "max"))):
            print(case, figure, side, "is", cell, "instead of", value)
        elif side != "ratio" and "verdict" in wanted["summary"][case - 1]["ratio"].get(figure, {}) \
                and numbers[0] not in labels:
            print(case, figure, side, "has no label", numbers[0], "in a chart")
    for case in wanted["summary"]:
        for figure, ratio in case["ratio"].items():
            if "verdict" in ratio and (wanted["summary"].index(case) + 1, figure, "ratio") in \
                    page.cells and f"{ratio['median']:.2f} {ratio['verdict']}" not in labels:
                print("no label", f"{ratio['median']:.2f} {ratio['verdict']}", "in the chart of ratios")


main()
