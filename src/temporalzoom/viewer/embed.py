"""A matplotlib Figure as a piece of HTML: inline SVG, or an embedded image if the drawing has very many elements."""

from __future__ import annotations

import base64
import io
from html import escape
from xml.etree import ElementTree

from matplotlib.figure import Figure

from temporalzoom.viewer.style import house_style

_MAX_SVG_BYTES = 300_000
_DROPPED = {"metadata", "style"}


def figure_html(figure: Figure, alt: str, prefix: str) -> str:
    """HTML of `figure`, the same bytes for the same drawing; `prefix` tells its ids from those of other figures."""
    svg = _svg(figure, alt, prefix)
    return svg if len(svg.encode()) <= _MAX_SVG_BYTES else _image(figure, alt)


def figure_svg(figure: Figure) -> str:
    """A file of its own, the same bytes for the same drawing."""
    buffer = io.BytesIO()
    with house_style():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue().decode()


def _svg(figure: Figure, alt: str, prefix: str) -> str:
    buffer = io.BytesIO()
    with house_style():
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(buffer.getvalue())
    _clean(root, prefix)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib.update({"role": "img", "aria-label": alt})
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element, prefix: str) -> None:
    """Drop what HTML does not need (namespaces, metadata, page-wide style) and make ids unique on the page."""
    element.tag = _local(element.tag)
    for child in list(element):
        if _local(child.tag) in _DROPPED:
            element.remove(child)
        else:
            _clean(child, prefix)
    attributes = {_local(name): value for name, value in element.attrib.items()}
    element.attrib.clear()
    for name, value in attributes.items():
        if name == "id":
            value = f"{prefix}-{value}"
        elif name == "href" and value.startswith("#"):
            value = f"#{prefix}-{value[1:]}"
        element.set(name, value.replace("url(#", f"url(#{prefix}-"))
    if element.tag != "text" and element.text is not None and not element.text.strip():
        element.text = None
    element.tail = None


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _image(figure: Figure, alt: str) -> str:
    buffer = io.BytesIO()
    with house_style():
        figure.savefig(buffer, format="png", dpi=200, metadata={"Software": None})
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{escape(alt)}" src="data:image/png;base64,{data}">'
