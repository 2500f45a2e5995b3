"""Hooks of mkdocs: the pages of errors lie in the package, files of the repository are no pages,
and nothing comes from elsewhere.

mkdocs calls these functions by their names, in `.venv-docs`. A link to a file that is no page of
the site becomes the file's path.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
ERRORS = "spark_app/hudi_table/cli/pages/"
LINK = re.compile(r"\[([^\]\n]*)\]\(((?:\.\./)+[^)\s#]+)(#[^)\s]*)?\)")
FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=\"?((?:https?:)?//[^\s\">]+)")
CELL = re.compile(r"(?<=<td>|<th>).*?(?=</td>|</th>)", re.DOTALL)
CODE = re.compile(r"(?<=<code>)[^<]*(?=</code>)")
STYLED = re.compile(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\s\"')]+)")


def on_files(files: Any, config: Any) -> Any:
    """The page of each error becomes a page below errors/."""
    for path in sorted((ROOT / ERRORS).glob("*.md")):
        files.append(File.generated(config, f"errors/{path.name}", content=path.read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links out of docs/ lead to the error's page, or say the path; code stays as it is."""
    folder = posixpath.dirname(f"docs/{page.file.src_uri}")

    def mended(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        if target.startswith("docs/"):
            return link[0]
        if not (ROOT / target).exists():
            raise PluginError(f"docs/{page.file.src_uri}: {link[2]} is not there")
        if target.startswith(ERRORS):
            return f"[{link[1]}]({posixpath.relpath(f'docs/errors/{posixpath.basename(target)}', folder)})"
        named = f"/{link[1].strip('`/')}/" in f"/{target}/"
        return f"`{target}`" if named else f"{link[1]} (`{target}`)"

    parts = FENCED.split(markdown)
    return "".join(part if at % 2 else LINK.sub(mended, part) for at, part in enumerate(parts))


def on_page_content(html: str, **_: Any) -> str:
    """Long names in tables break after a dot, a slash or an underscore, and not anywhere:
    `site.css` forbids the rest."""

    def breakable(code: re.Match[str]) -> str:
        return re.sub(r"(?<=\w)([./_])(?=\w)", r"\1<wbr>", code[0])

    return CELL.sub(lambda cell: CODE.sub(breakable, cell[0]), html)


def on_post_build(config: Any) -> None:
    """The site shows itself without a network: no script, style, font or picture is another
    server's."""
    strays = sorted(set(_strays(Path(config.site_dir))))
    if strays:
        raise PluginError("loaded from elsewhere: " + "; ".join(strays))


def _strays(site: Path) -> Iterator[str]:
    for path in site.rglob("*"):
        if path.suffix in (".html", ".css"):
            found = (LOADED if path.suffix == ".html" else STYLED).findall(path.read_text("utf-8"))
            yield from (f"{path.relative_to(site)}: {address}" for address in found)
