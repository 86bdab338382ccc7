"""The page around a report: one HTML document with its style inside, nothing to load."""

from __future__ import annotations

from html import escape

_STYLE = """
:root { color-scheme: light; --ink: #1f2933; --muted: #64707d; --rule: #dfe3e8; --line: #7c8691; --accent: #2b5c8a;
  --paper: #fff; --hover: #f7f9fa; --code: #f3f5f7; --right: 43, 116, 138; --wrong: 208, 76, 44; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.55; font-size: 16px;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", Arial, sans-serif; }
main { max-width: 980px; margin: 0 auto; padding: 48px 24px 72px; }
header { border-bottom: 1px solid var(--rule); padding-bottom: 20px; margin-bottom: 28px; }
h1 { font-size: 30px; line-height: 1.2; letter-spacing: -0.015em; margin: 0; font-weight: 650; }
.subtitle { color: var(--muted); margin: 8px 0 0; font-size: 17px; }
nav { margin: 16px 0 0; font-size: 14px; display: flex; flex-wrap: wrap; gap: 2px 18px; }
nav a { color: var(--accent); text-decoration: none; }
nav a:hover { text-decoration: underline; }
h2 { font-size: 20px; line-height: 1.3; letter-spacing: -0.01em; margin: 44px 0 10px; font-weight: 650; }
p { margin: 0 0 14px; max-width: 70ch; overflow-wrap: break-word; }
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; font-size: 0.875em;
  background: var(--code); padding: 1px 5px; border-radius: 3px; }
figure { margin: 22px 0 30px; }
figcaption { color: var(--muted); font-size: 14px; line-height: 1.5; max-width: 78ch; }
figure.plot figcaption { margin-top: 8px; }
figure.table figcaption { margin-bottom: 8px; }
figcaption b { color: var(--ink); font-weight: 600; }
.scroll { overflow-x: auto; -webkit-overflow-scrolling: touch; }
.scroll svg, .scroll img { display: block; width: 100%; min-width: 640px; height: auto; }
video { display: block; width: 640px; max-width: 100%; height: auto; background: #000; }
.scroll svg * { stroke-linejoin: round; stroke-linecap: butt; }
.scroll svg text { font-family: inherit !important; }
/* not collapsed: a sticky column would lose its borders */
table { border-collapse: separate; border-spacing: 0; min-width: 50%;
  font-size: 14.5px; line-height: 20px; font-variant-numeric: tabular-nums; }
th { color: var(--muted); font-weight: 500; font-size: 13.5px; text-align: left; vertical-align: bottom; }
thead th { border-bottom: 1px solid var(--line); }
/* headers wrap, so that a table with many columns fits; numbers and names do not */
th, td { padding: 7px 9px; }
tbody th, .number { white-space: nowrap; }
thead th { white-space: normal; }
tbody th { color: var(--ink); font-weight: 400; font-size: inherit; }
tbody th, tbody td { border-bottom: 1px solid var(--rule); }
tbody tr:hover > * { background: var(--hover); }
th:first-child, td:first-child { padding-left: 2px; position: sticky; left: 0; background: var(--paper); }
.number { text-align: right; }
td b { font-weight: 700; }
ul.sentences { margin: 0 0 14px; padding-left: 1.2em; max-width: 70ch; overflow-wrap: break-word; }
ul.sentences li { margin: 0 0 6px; }
ul.lead { font-size: 18px; line-height: 1.5; }
ul.lead li:first-child { font-weight: 600; }
pre { background: var(--code); border-radius: 4px; padding: 12px 14px; overflow-x: auto; line-height: 1.6; }
pre code { background: none; padding: 0; }
.matrix table { min-width: 0; }
.matrix td { text-align: center; min-width: 38px; padding: 6px 8px; border-left: 1px solid var(--rule); }
.matrix thead th:not(:first-child) { vertical-align: bottom; padding: 6px 8px; }
.matrix thead span { writing-mode: vertical-rl; transform: rotate(180deg); max-height: 170px; white-space: nowrap; }
.matrix .right { background: rgba(var(--right), var(--share)); }
.matrix .wrong { background: rgba(var(--wrong), var(--share)); }
@media (max-width: 600px) {
  main { padding: 26px 16px 48px; }
  h1 { font-size: 25px; }
  h2 { margin-top: 34px; }
  th, td { padding: 7px 9px; }
  .scroll { margin-right: -16px; }
}
@media screen and (prefers-color-scheme: dark) {
  :root { color-scheme: dark; --ink: #e4e8ec; --muted: #9aa5b1; --rule: #2f3841; --line: #6b7782; --accent: #7db3e0;
    --paper: #14191e; --hover: #1b2228; --code: #212931; --right: 70, 160, 185; --wrong: 232, 104, 70; }
  /* drawings are made for white paper: light becomes dark, and hues stay what they are */
  .plot svg, .plot img { filter: invert(0.92) hue-rotate(180deg); }
}
@media print {
  main { max-width: none; padding: 0; }
  nav { display: none; }
  figure { break-inside: avoid; }
  .scroll svg, .scroll img { min-width: 0; }
}
"""


def page(title: str, subtitle: str, sections: list[tuple[str, str]], body: str) -> str:
    """The whole document. `sections`: (anchor, heading) pairs for the links on top; `body` is HTML already."""
    links = "".join(f'<a href="#{anchor}">{escape(heading)}</a>' for anchor, heading in sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<header>\n<h1>{escape(title)}</h1>\n"
        + (f'<p class="subtitle">{escape(subtitle)}</p>\n' if subtitle else "")
        + (f'<nav aria-label="Sections">{links}</nav>\n' if len(sections) > 2 else "")
        + f"</header>\n{body}</main>\n</body>\n</html>\n"
    )
