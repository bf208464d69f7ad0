"""A receiver of webhooks that has bad days: receiver.py PORT LOG SECRET PLAN...

Each request is dealt with as the next word of the plan says, and as `ok` once there are no more. The log has a line
of JSON for each, with whether the library of the specification finds its signature good.
"""

import json
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook

port, log, secret = int(sys.argv[1]), sys.argv[2], sys.argv[3]
plan = sys.argv[4:]
lock = threading.Lock()


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with lock:
            does = plan.pop(0) if plan else "ok"
        try:
            said = Webhook(secret).verify(body, dict(self.headers))
        except Exception as problem:  # noqa: BLE001
            said = {"problem": repr(problem)}
        if does == "slow":
            # Long enough for a second message to overtake the first.
            time.sleep(0.4)
        with lock, open(log, "a") as lines:
            line = {"did": does, "at": time.time(), "id": self.headers["webhook-id"], "said": said}
            lines.write(json.dumps(line) + "\n")
        if does in ("cut", "lost"):
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif does == "hang":
            time.sleep(3)
            self.close_connection = True
        else:
            self.send_response({"500": 500, "429": 429}.get(does, 204))
            if does == "429":
                self.send_header("retry-after", "1")
            self.send_header("content-length", "0")
            self.end_headers()

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = True


server = Server(("127.0.0.1", port), Receiver)
print(server.server_port, flush=True)
server.serve_forever()
