"""An agent that a wake starts: it accepts turns at /chat, each once, and stores them on disk. Python 3.11, no packages."""
import hmac
import json
import os
import sqlite3
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = os.environ["REVEILLE_MACHINE_TOKEN"]
BOOK = sqlite3.connect("turns.db", check_same_thread=False, isolation_level=None)
BOOK.execute("PRAGMA synchronous=FULL")
BOOK.execute("CREATE TABLE IF NOT EXISTS turns (fire TEXT PRIMARY KEY, conversation TEXT, turn TEXT, message TEXT)")


class Agent(BaseHTTPRequestHandler):
    def answer(self, status: int, body: dict) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self) -> None:
        self.answer(200, {"status": "ok", "busy": False, "queued": 0})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not hmac.compare_digest(self.headers.get("authorization", ""), f"Bearer {TOKEN}"):
            return self.answer(401, {"ok": False, "error": {"code": "unauthorized", "message": "no", "retryable": False}})
        fire = self.headers.get("x-matrix-wake-fire") or str(uuid.uuid4())
        turn = (fire, body.get("conversation_id") or str(uuid.uuid4()), str(uuid.uuid4()), body["message"])
        # Written before the acknowledgement: when the response is lost, the same occurrence arrives again and stays one turn.
        is_new = BOOK.execute("INSERT OR IGNORE INTO turns VALUES (?, ?, ?, ?)", turn).rowcount == 1
        kept = BOOK.execute("SELECT conversation, turn FROM turns WHERE fire = ?", (fire,)).fetchone()
        data = {"conversation_id": kept[0], "turn_id": kept[1], "deduped": not is_new}
        self.answer(202 if is_new else 200, {"ok": True, "data": data})
        if is_new:
            print(f"my turn: {body['message']}", flush=True)  # a real agent calls its model here

    def log_message(self, *_: object) -> None:
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Agent).serve_forever()
