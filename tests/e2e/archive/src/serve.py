"""A service of the older generation: it says how it was started."""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Answering(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # the library's name
        """Say what this service was built and started with."""
        said = {"greeting": os.environ["GREETING"], "started": sys.argv[1:]}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(said).encode())


ThreadingHTTPServer(("", int(os.environ.get("PORT", "3000"))), Answering).serve_forever()
