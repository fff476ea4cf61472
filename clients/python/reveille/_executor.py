# Generated from schemas/executor.openapi.json by "npm run schemas"; do not edit.
# ruff: noqa: E501
from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict, cast

from ._transport import UNSET, Caller, Number, Unset, quoted

class AcceptedIntent(TypedDict):
    intent_id: str


PlanNode = Any  # refers to itself; docs/reference/routes.md has its members

class SubmitIntent(TypedDict):
    verb: str
    objects: NotRequired[dict[str, Any] | list[Any]]
    constraints: NotRequired[dict[str, Any] | list[Any]]
    deadline: NotRequired[str]
    plan: "PlanNode"


SubmitContext = TypedDict("SubmitContext", {
    "from": Literal["person", "alarm", "tool"],
    "text": str,
})

class IntentStateError(TypedDict):
    code: NotRequired[str]
    message: str


class IntentStateReceipt(TypedDict):
    sha256: str
    envelopes: int
    path: str


class IntentState(TypedDict):
    status: Literal["drafting", "planned", "awaiting_approval", "executing", "completed", "failed", "denied", "cancelled", "unknown"]
    queued_behind: NotRequired[str]
    parked: NotRequired[bool]
    result: NotRequired[Any]
    clarify: NotRequired[str]
    error: NotRequired[IntentStateError]
    receipt: NotRequired[IntentStateReceipt]


class IntentNodeAnswered(TypedDict):
    approved: bool
    at: str
    name: NotRequired[str]
    approver: NotRequired[str]


class IntentNode(TypedDict):
    node_id: str
    state: Literal["waiting", "awaiting_approval", "running", "done", "failed", "denied", "expired", "not_run", "unknown", "skipped"]
    detail: NotRequired[str]
    answered: NotRequired[IntentNodeAnswered]


class Intent(TypedDict):
    status: Literal["drafting", "planned", "awaiting_approval", "executing", "completed", "failed", "denied", "cancelled", "unknown"]
    queued_behind: NotRequired[str]
    parked: NotRequired[bool]
    result: NotRequired[Any]
    clarify: NotRequired[str]
    error: NotRequired[IntentStateError]
    receipt: NotRequired[IntentStateReceipt]
    intent_id: str
    created_at: str
    ended_at: NotRequired[str]
    conversation_id: NotRequired[str]
    origin: Literal["chronos", "person"]
    prose: NotRequired[str]
    intent: NotRequired[SubmitIntent]
    nodes: list[IntentNode]


class IntentPage(TypedDict):
    intents: list[Intent]


class Envelope(TypedDict):
    seq: int
    kind: Literal["intent.accepted", "intent.compiled", "intent.clarify", "intent.parked", "call.decided", "call.tried", "gate.asked", "gate.answered", "gate.refused", "gate.expired", "call.started", "call.finished", "call.reconciled", "call.read_back", "wait.started", "wait.finished", "journal.broken", "intent.completed", "intent.failed", "intent.cancelled", "intent.unknown"]
    body: dict[str, Any]
    prev_hash: str
    key_id: str
    signature: str


class Receipt(TypedDict):
    format: Literal["reveille-receipt/1"]
    intent_id: str
    public_key: str
    envelopes: list[Envelope]


class GateCall(TypedDict):
    tool: str
    args: Any
    call_sha256: str


class Gate(TypedDict):
    node_id: str
    question: str
    options: NotRequired[list[str]]
    call: GateCall
    displayed_sha256: str
    expires_at: str


class GatePage(TypedDict):
    pending: list[Gate]


class AnswerGateResult(TypedDict):
    intent_id: str
    node_id: str
    approved: bool


class AnswerGatePasskey(TypedDict):
    authenticator_data: str
    client_data: str
    signature: str


class ListPasskeysResultPasskey(TypedDict):
    approver: str
    name: str
    credential_id: str
    origin: str
    rp_id: str


class ListPasskeysResult(TypedDict):
    executor: str
    passkeys: list[ListPasskeysResultPasskey]


class ParkIntentResult(TypedDict):
    intent_id: str
    status: Literal["drafting", "planned", "awaiting_approval", "executing", "completed", "failed", "denied", "cancelled", "unknown"]
    parked: bool


class HealthResult(TypedDict):
    status: str


class ExecutorRoutes(Caller):
    """Compiles tasks to plans, asks an approver before each step that cannot be undone, executes the plan and records it in a signed receipt."""

    def submit(self, *, prose: str | Unset = UNSET, intent: SubmitIntent | Unset = UNSET, idempotency_key: str | Unset = UNSET, conversation_id: str | Unset = UNSET, origin: Literal["chronos", "person"] | Unset = UNSET, context: list[SubmitContext] | Unset = UNSET) -> AcceptedIntent:
        """Submit a task, in prose or as an intent; acknowledged once it is durable."""
        return cast("AcceptedIntent", self._call("POST", "/messages/async", body={"prose": prose, "intent": intent, "idempotency_key": idempotency_key, "conversation_id": conversation_id, "origin": origin, "context": context}))

    def get_state(self, id: str) -> IntentState:
        """The state of an intent."""
        return cast("IntentState", self._call("GET", f"/messages/async/{quoted(id)}"))

    def list_intents(self, *, limit: int | Unset = UNSET, status: Literal["drafting", "planned", "awaiting_approval", "executing", "completed", "failed", "denied", "cancelled", "unknown"] | Unset = UNSET) -> IntentPage:
        """Your intents, newest first."""
        return cast("IntentPage", self._call("GET", "/intents", query={"limit": limit, "status": status}))

    def get_intent(self, id: str) -> Intent:
        """An intent, its plan, and the state of each step."""
        return cast("Intent", self._call("GET", f"/intents/{quoted(id)}"))

    def get_receipt(self, id: str) -> Receipt:
        """The chain of signed envelopes that "reveille receipt verify" reads."""
        return cast("Receipt", self._call("GET", f"/intents/{quoted(id)}/receipt"))

    def list_gates(self, id: str) -> GatePage:
        """The steps that wait for an answer, with the exact calls that would be made."""
        return cast("GatePage", self._call("GET", f"/intents/{quoted(id)}/gates"))

    def answer_gate(self, id: str, node_id: str, *, approved: bool, call_sha256: str, displayed_sha256: str, approver: str, expires_at: str, answer: str | Unset = UNSET, signature: str | Unset = UNSET, passkey: AnswerGatePasskey | Unset = UNSET) -> AnswerGateResult:
        """Answer a step, signed with an approver's key or a passkey; the answer counts only for the question that was shown."""
        return cast("AnswerGateResult", self._call("POST", f"/intents/{quoted(id)}/gates/{quoted(node_id)}/answer", body={"approved": approved, "answer": answer, "call_sha256": call_sha256, "displayed_sha256": displayed_sha256, "approver": approver, "expires_at": expires_at, "signature": signature, "passkey": passkey}))

    def list_passkeys(self) -> ListPasskeysResult:
        """The passkeys with which your questions may be answered."""
        return cast("ListPasskeysResult", self._call("GET", "/passkeys"))

    def cancel_intent(self, id: str, *, reason: str | Unset = UNSET) -> IntentState:
        """Cancel an intent before its first escalate-class call has started; the body is optional."""
        return cast("IntentState", self._call("POST", f"/intents/{quoted(id)}/cancel", body={"reason": reason}))

    def reconcile_intent(self, id: str) -> IntentState:
        """Query the tools again for the outcome of calls whose outcome is unknown."""
        return cast("IntentState", self._call("POST", f"/intents/{quoted(id)}/reconcile"))

    def park_intent(self, id: str, *, conversation_id: str) -> ParkIntentResult:
        """Park an intent; when it ends, an alarm in this conversation reports the outcome."""
        return cast("ParkIntentResult", self._call("POST", f"/intents/{quoted(id)}/park", body={"conversation_id": conversation_id}))

    def health(self) -> HealthResult:
        """The process is alive."""
        return cast("HealthResult", self._call("GET", "/healthz"))
