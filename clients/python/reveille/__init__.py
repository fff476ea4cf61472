"""Clients for Reveille, an alarm clock for AI agents.

``Chronosd`` sets alarms as an agent, ``Agent`` talks to a person's agent through the router (or to a daemon directly),
``Executor`` submits intents that a person approves. Every call raises ``ReveilleError``.
"""
from __future__ import annotations

import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ._chronosd import ChronosdRoutes
from ._executor import ExecutorRoutes
from ._router_public import AgentRoutes, Turn
from ._transport import UNSET, ReveilleError, Unset, decode

if TYPE_CHECKING:
    from .identity import Identity

__all__ = ["UNSET", "Agent", "Chronosd", "Event", "Executor", "ReveilleError", "Unset"]

#: A daemon sends a line every 15 seconds: a stream that is silent for this time is dead.
SILENCE_SECONDS = 50
#: A principal token is not used in its last seconds.
SPARE_SECONDS = 15


class Chronosd(ChronosdRoutes):
    """Alarms of one agent. The client proves the identity when needed, and again before the proof expires.

    An alarm that waits for a webhook, and one that is checked before each wake::

        hook = chronosd.create_alarm(wake_message="Review it.", event={"source": "webhook", "verify": "github"})["hook"]
        chronosd.create_alarm(
            wake_message="Read the feed.",
            when="every 15 minutes",
            check={"http": {"url": "https://example.com/feed", "etag": "changed"}},
        )
    """

    def __init__(
        self, url: str, token: str, identity: Identity, *, timeout: float = 30, ca_file: str | None = None
    ) -> None:
        super().__init__(url, token, timeout=timeout, ca_file=ca_file)
        self._identity = identity
        self._principal = ("", 0.0)

    def _proof(self) -> dict[str, str]:
        token, usable_until = self._principal
        if time.monotonic() >= usable_until:
            who = self._identity
            challenge = self._call("POST", "/v1/agent/auth/challenge", body={"did": who.did})
            answer = {
                "did": who.did,
                "public_key": who.public_key,
                "nonce": challenge["nonce"],
                "signature": who.sign(f"matrix-chronos-auth:{who.did}:{challenge['nonce']}"),
            }
            asked_at = time.monotonic()
            proven = self._call("POST", "/v1/agent/auth/verify", body=answer)
            token = proven["token"]
            self._principal = (token, asked_at + float(proven["expires_in"]) - SPARE_SECONDS)
        return {"x-chronos-agent": token}


class Event(NamedTuple):
    """An event of an agent: its turns, their text as it arrives, waiting questions."""

    #: ``None`` when the stream cannot resume from it.
    id: str | None
    type: str
    data: Any


class Agent(AgentRoutes):
    """A person's agent. A call wakes its machine when it goes through a router."""

    def events(self, *, conversation_id: str | None = None, after: str | None = None) -> Iterator[Event]:
        """Yields events without end, from now on or after a given event.

        A lost connection is opened again at its position. Errors that are not retryable are raised.
        """
        pause = 0.5
        while True:
            try:
                for event in self._stream(conversation_id, after):
                    pause = 0.5
                    after = event.id or after
                    yield event
            except ReveilleError as error:
                if not error.retryable:
                    raise
                pause = max(pause, error.retry_after or 0)
            time.sleep(pause)
            pause = min(pause * 2, 15)

    def _stream(self, conversation_id: str | None, after: str | None) -> Iterator[Event]:
        query = "" if conversation_id is None else "?" + urllib.parse.urlencode({"conversation_id": conversation_id})
        headers = {**self._headers, "accept": "text/event-stream"}
        if after is not None:
            headers["last-event-id"] = after
        request = urllib.request.Request(f"{self._url}/events{query}", headers=headers)
        with self._open(request, SILENCE_SECONDS) as response:
            fields: dict[str, str] = {}
            for raw in response:
                line = raw.decode().rstrip("\r\n")
                if line:
                    name, _, value = line.partition(":")
                    value = value.removeprefix(" ")
                    fields[name] = f"{fields['data']}\n{value}" if name == "data" and "data" in fields else value
                    continue
                if "data" in fields:
                    yield Event(fields.get("id"), fields.get("event", "message"), decode(fields["data"].encode()))
                fields = {}

    def ask(self, message: str, *, conversation_id: str | None = None, timeout: float = 600) -> Turn:
        """Sends a message and waits for the end of the turn, ``timeout`` seconds at most.

        :raises ReveilleError: ``unavailable`` when the turn has not ended in time; it continues
        """
        accepted = self.chat(message=message, conversation_id=UNSET if conversation_id is None else conversation_id)
        end = time.monotonic() + timeout
        pause = 0.1
        while True:
            turn = self.get_turn(accepted["conversation_id"], accepted["turn_id"])
            if turn["status"] not in ("queued", "running"):
                return turn
            if time.monotonic() > end:
                raise ReveilleError("unavailable", f"the turn did not end within {timeout:g} s; it continues", True)
            time.sleep(pause)
            pause = min(pause * 1.5, 2)


class Executor(ExecutorRoutes):
    """Intents of one user, with a submitter's token: submit, read and cancel; it cannot answer questions."""

    def __init__(self, url: str, token: str, user: str, *, timeout: float = 30, ca_file: str | None = None) -> None:
        super().__init__(url, token, timeout=timeout, ca_file=ca_file)
        self._headers["x-matrix-user"] = user
