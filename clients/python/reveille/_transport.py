"""Calls of one daemon: timeouts, the response envelope and error codes."""
from __future__ import annotations

import json
import socket
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from http.client import HTTPException
from typing import Any, Final


class Unset:
    """The default of an optional argument: the member is omitted, which differs from ``None``."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()

#: A number: as a ``Decimal`` it keeps its digits.
Number = int | float | Decimal

#: Maximum size of an answer, in bytes.
ANSWER_BYTES = 64 * 1024 * 1024


class ReveilleError(Exception):
    """The refusal of a daemon, or the reason why it could not be reached.

    ``code`` is one of the closed set (docs/reference/api.md); ``unavailable`` is also the code of a daemon that did not answer.
    ``retryable`` says whether the same call may succeed later; ``retry_after`` is the minimum wait in seconds.
    """

    def __init__(self, code: str, message: str, retryable: bool, retry_after: float | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retry_after = retry_after


def _lost(method: str, body: Any) -> str:
    """Ends the message of a call that may have changed something although no answer came."""
    if method == "GET":
        return ""
    if isinstance(body, Mapping) and "idempotency_key" in body:
        remedy = "send it again with the same idempotency_key; without one, look for it in the list before you send it again"
    else:
        remedy = "check that before you send it again"
    return f"; it is unknown whether the request was carried out: {remedy}"


class _KeepsHost(urllib.request.HTTPRedirectHandler):
    """A redirect would send the token to another address, so none is followed."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def quoted(part: str) -> str:
    """A part of a path, encoded. URL parsers resolve ``.`` and ``..`` even where they are encoded."""
    if part in ("", ".", ".."):
        raise ValueError(f'an id in a path must not be empty, "." or ".." (got {part!r})')
    return urllib.parse.quote(part, safe="")


def encode(value: Any) -> str:
    """JSON in which a ``Decimal`` keeps its digits."""
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"a number must be finite (got {value})")
        return str(value)
    if isinstance(value, Mapping):
        members = [f"{json.dumps(str(key))}:{encode(member)}" for key, member in value.items()]
        return "{" + ",".join(members) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(encode(member) for member in value) + "]"
    return json.dumps(value, allow_nan=False)


def decode(text: bytes) -> Any:
    """The value of a JSON text; a number with a fraction or an exponent is a ``Decimal``, digit for digit."""
    return json.loads(text, parse_float=Decimal)


class Caller:
    """One daemon and the credential for it. Made by the clients; has no calls of its own."""

    def __init__(self, url: str, token: str, *, timeout: float = 30, ca_file: str | None = None) -> None:
        """``timeout`` is in seconds, for each read; ``ca_file`` names additional trusted certificates (PEM)."""
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
            raise ValueError(f"url must be an http:// or https:// address without a query (got {url!r})")
        if any(not "!" <= character <= "~" for character in token) or not token:
            raise ValueError("token must be printable ASCII without spaces")
        self._url = url.rstrip("/")
        self._headers: dict[str, str] = {"authorization": f"Bearer {token}"}
        self._timeout = timeout
        context = ssl.create_default_context()
        if ca_file is not None:
            context.load_verify_locations(ca_file)
        # A proxy of the environment would get the token.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context), _KeepsHost()
        )

    def _proof(self) -> dict[str, str]:
        """The headers that prove an identity."""
        raise NotImplementedError

    @contextmanager
    def _open(self, request: urllib.request.Request, timeout: float, lost: str = "") -> Iterator[Any]:
        """The answer to a request. ``lost`` ends the message of an error after which the outcome is unknown.

        :raises ReveilleError: the daemon's error, or the reason why it did not answer
        """
        try:
            with self._opener.open(request, timeout=timeout) as response:
                yield response
        except urllib.error.HTTPError as refusal:
            with refusal:
                raise self._error_of(refusal, lost) from None
        except (urllib.error.URLError, OSError, HTTPException) as failure:
            reason = getattr(failure, "reason", failure)
            arrived = not isinstance(reason, (ConnectionRefusedError, socket.gaierror))
            message = f"{self._url} did not answer: {reason}{lost if arrived else ''}"
            raise ReveilleError("unavailable", message, True) from failure

    def _error_of(self, refusal: urllib.error.HTTPError, lost: str) -> ReveilleError:
        after = refusal.headers.get("retry-after", "")
        retry_after = float(after) if after.isdigit() else None
        try:
            error = decode(refusal.read(ANSWER_BYTES))["error"]
            return ReveilleError(str(error["code"]), str(error["message"]), bool(error["retryable"]), retry_after)
        except (ValueError, KeyError, TypeError, OSError, HTTPException):
            # A proxy answers 502, 503 or 504 when the daemon's answer is lost.
            message = f"{self._url} answered {refusal.code} without a reason{lost if refusal.code >= 500 else ''}"
            return ReveilleError("unavailable", message, refusal.code >= 500, retry_after)

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = UNSET,
        proven: bool = False,
    ) -> Any:
        asked = {name: value for name, value in (query or {}).items() if not isinstance(value, Unset)}
        target = self._url + path + (f"?{urllib.parse.urlencode(asked)}" if asked else "")
        headers = {**self._headers, **(self._proof() if proven else {})}
        data = None
        if not isinstance(body, Unset):
            given = {name: value for name, value in body.items() if not isinstance(value, Unset)}
            data = encode(given).encode()
            headers["content-type"] = "application/json"
        request = urllib.request.Request(target, data=data, headers=headers, method=method)
        lost = _lost(method, body)
        with self._open(request, self._timeout, lost) as response:
            text = response.read(ANSWER_BYTES + 1)
        if len(text) > ANSWER_BYTES:
            raise ReveilleError("internal", f"{self._url} answered more than {ANSWER_BYTES} bytes", False)
        try:
            return decode(text)["data"]
        except (ValueError, KeyError, TypeError) as failure:
            message = f"{self._url} answered without the expected JSON{lost}"
            raise ReveilleError("unavailable", message, False) from failure
