"""An MCP server over HTTP that misbehaves in one way, named by its first argument. It prints its port when it listens;
the second argument is a file in which it notes what it was asked to do, for tests to look at."""

import json
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

how, log = sys.argv[1], sys.argv[2]

TOOL = {
    "name": "send",
    "description": "Does it",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def note(text):
    with open(log, "a") as file:
        file.write(text + "\n")


class Elsewhere(BaseHTTPRequestHandler):
    """Where nothing may ever be sent."""

    def do_POST(self):
        note(f"elsewhere with {self.headers.get('Authorization')}")
        self.send_error(500)

    do_GET = do_POST

    def log_message(self, *_):
        pass


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self, status, kind, body, **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def answer(self, id, result, **headers):
        message = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()
        if how == "streams":
            return self.body(200, "text/event-stream", b"event: message\ndata: " + message + b"\n\n", **headers)
        self.body(200, "application/json", message, **headers)

    def cut(self):
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.close_connection = True

    def call(self, id, params):
        note("called " + json.dumps(params["arguments"]))
        if how == "cuts":
            return self.cut()
        if how == "cuts-stream":
            self.stream()
            self.wfile.write(b"event: message\ndata: {\"jsonrpc\": \"2.0\", \"id\"")
            return self.cut()
        if how == "never":
            # Until the test ends the server.
            return threading.Event().wait()
        if how == "huge":
            return self.body(200, "application/json", b'{"jsonrpc": "2.0", "result": "' + b"x" * (17 << 20))
        if how == "endless-event":
            self.stream()
            while True:
                self.wfile.write(b"data: " + b"x" * 65536 + b"\n")
        if how == "not-json":
            return self.body(200, "application/json", b"<html>It works!</html>")
        if how == "fails":
            return self.body(503, "text/plain", b"the mill has burnt down")
        if how == "refuses":
            return self.body(429, "text/plain", b"too many letters today")
        if how == "moved":
            return self.body(307, "text/plain", b"", Location=f"http://127.0.0.1:{elsewhere.server_port}/mcp")
        did = "did " + params["arguments"]["text"]
        self.answer(id, {"content": [{"type": "text", "text": did}], "structuredContent": {"id": 7}})

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        id, method, params = message.get("id"), message.get("method"), message.get("params")
        if how == "login":
            return self.body(401, "text/plain", f"no: {self.headers.get('Authorization')}".encode())
        if method == "initialize":
            server_info = {"name": "hostile", "version": "1"}
            told = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server_info}
            return self.answer(id, told, **{"Mcp-Session-Id": "s1"})
        if method == "tools/list":
            return self.answer(id, {"tools": [TOOL]})
        if method == "tools/call":
            return self.call(id, params)
        if id is None:
            return self.body(202, "text/plain", b"")
        error = {"code": -32601, "message": "Method not found"}
        self.body(200, "application/json", json.dumps({"jsonrpc": "2.0", "id": id, "error": error}).encode())

    def do_GET(self):
        self.body(405, "text/plain", b"")

    def do_DELETE(self):
        self.body(200, "text/plain", b"")

    def log_message(self, *_):
        pass


elsewhere = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
