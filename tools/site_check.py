"""Check the built site in Chromium: `python -m tools.site_check`, after `make site`.

Lays out every page at the width of a phone, in light and dark. No page may be wider than the screen, and each
text must have the contrast of WCAG 2.2 level AA. A search for each condition reason must find the page about
reasons.
"""

import json
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory
from typing import Any, cast

ROOT = Path(__file__).parents[1]
SITE = ROOT / "dist/site"
CHECK_PAGE = Path(__file__).with_name("site_check.html")
REASONS = ROOT / "docs/status.md"
MINUTES = 5


class CheckServer(ThreadingHTTPServer):
    """Serves the site and the page that checks it, which posts its findings."""

    def __init__(self, site: Path, page: str) -> None:
        super().__init__(("127.0.0.1", 0), partial(Handler, directory=str(site)))
        self.page = page.encode()
        self.problems: Queue[str] = Queue()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print an error, except for pages that the browser closed while they were loading."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(SimpleHTTPRequestHandler):
    """The requests of the browser."""

    @property
    def _check_server(self) -> CheckServer:
        return cast("CheckServer", self.server)

    def do_GET(self) -> None:
        """Send a file of the site, or the page that checks it."""
        if self.path != "/look.html":
            super().do_GET()
            return
        self._answer(self._check_server.page)

    def do_POST(self) -> None:
        """Receive the findings."""
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._answer(b"")
        self._check_server.problems.put(text)

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  named by http.server
        """Log nothing."""


def reasons() -> list[str]:
    """The condition reasons on the page about the status."""
    text = REASONS.read_text(encoding="utf-8")
    rows = re.findall(r"^\|[^|]*\|[^|]*\| `(\w+)` \|", text, re.MULTILINE)
    return sorted(set(rows))


def findings(chromium: str, site: Path) -> list[str]:
    """The problems of the site, one line each.

    Raises:
        queue.Empty: the browser has not read all pages within `MINUTES`.
    """
    pages = [f"/{page.parent.relative_to(site)}/" for page in sorted(site.rglob("index.html"))]
    questions = json.dumps({"pages": pages, "reasons": reasons()})
    page = CHECK_PAGE.read_text(encoding="utf-8").replace("WANTED", questions)
    with CheckServer(site, page) as server, TemporaryDirectory() as profile:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/look.html"
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu"]
        browser = subprocess.Popen(  # noqa: S603  a fixed command
            [*command, f"--user-data-dir={profile}", "--remote-debugging-port=0", address],
            stderr=subprocess.DEVNULL,
        )
        try:
            return server.problems.get(timeout=60 * MINUTES).splitlines()
        finally:
            browser.terminate()
            browser.wait()
            server.shutdown()


def main() -> None:
    """Print the problems; exit with code 1 if there are any."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("needs chromium")
    if not SITE.exists():
        raise SystemExit("dist/site: not found; run `make site`")
    problems = findings(chromium, SITE)
    print("\n".join(problems) or "no findings")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
