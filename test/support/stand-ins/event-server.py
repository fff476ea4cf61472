"""An MCP server of the official Python SDK with MCP Events by webhook (the package mcp-webhook-events).

It prints its address, and publishes the event of each line of standard input, which is JSON.
"""
import json
import socket
import sys
import tempfile
import threading

import uvicorn
from mcp.server import MCPServer
from mcp_webhook_events import EventDefinition, McpEvents, SafeHttp

mcp = MCPServer("tickets")
anything = {"type": "object"}
events = McpEvents(
    mcp,
    store=tempfile.mkdtemp() + "/events.sqlite3",
    definitions=[
        EventDefinition(
            name="ticket.created", description="a ticket was created", input_schema=anything, payload_schema=anything
        )
    ],
    http=SafeHttp(allow_insecure_for_tests=True),
)
events.install()


def publish() -> None:
    for line in sys.stdin:
        events.publish("ticket.created", json.loads(line))
        events.deliver_pending()


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
threading.Thread(target=publish, daemon=True).start()
app = mcp.streamable_http_app(stateless_http=True, json_response=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
