# Generated from schemas/router-public.openapi.json by "npm run schemas"; do not edit.
# ruff: noqa: E501
from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict, cast

from ._transport import UNSET, Caller, Number, Unset, quoted

class AcceptedTurn(TypedDict):
    conversation_id: str
    turn_id: str
    deduped: bool


class ConversationSummary(TypedDict):
    id: str
    turn_count: Number
    created_at: str
    last_activity_at: str
    last_message: str


class ConversationPage(TypedDict):
    conversations: list[ConversationSummary]
    next_cursor: NotRequired[str]


class TurnTermsRun(TypedDict):
    argv: list[str]
    timeout_seconds: NotRequired[int]
    by_person: NotRequired[Literal[True]]


class TurnTerms(TypedDict):
    model: NotRequired[str]
    tools: NotRequired[list[str]]
    deliver: NotRequired[list[str]]
    run: NotRequired[TurnTermsRun]
    tokens_per_turn: NotRequired[int]


class TurnUsage(TypedDict):
    input_tokens: int
    output_tokens: int
    cost_usd: NotRequired[Number]
    incomplete: NotRequired[Literal[True]]


class Turn(TypedDict):
    id: str
    conversation_id: str
    origin: Literal["user", "chronos"]
    alarm_id: NotRequired[str]
    fire_id: NotRequired[str]
    scheduled_for: NotRequired[str]
    missed_count: NotRequired[Number]
    late_because: NotRequired[Literal["slept", "not_running", "stalled", "machine_start"]]
    label: NotRequired[str]
    set_at: NotRequired[str]
    set_by: NotRequired[str]
    sent_by: NotRequired[str]
    terms: NotRequired[TurnTerms]
    message: str
    payload: NotRequired[Any]
    status: Literal["queued", "running", "done", "failed", "interrupted"]
    reply: NotRequired[str]
    error: NotRequired[str]
    model: NotRequired[str]
    usage: NotRequired[TurnUsage]
    created_at: str
    started_at: NotRequired[str]
    finished_at: NotRequired[str]
    retry_at: NotRequired[str]
    attempts: Number


class Conversation(TypedDict):
    id: str
    turn_count: Number
    created_at: str
    last_activity_at: str
    turns: list[Turn]
    last_event_id: NotRequired[Number]
    next_cursor: NotRequired[str]


class ToolsResultTool(TypedDict):
    name: str
    description: str
    parameters: dict[str, Any]
    uri: NotRequired[str]


class ToolsResultEscalated(TypedDict):
    name: str
    uri: str
    reason: str


class ToolsResultOff(TypedDict):
    alias: str
    why: str


class ToolsResult(TypedDict):
    tools: list[ToolsResultTool]
    escalate: list[str]
    escalated: list[ToolsResultEscalated]
    off: NotRequired[list[ToolsResultOff]]
    sign_in: NotRequired[list[ToolsResultOff]]
    limits: NotRequired[str]
    model: NotRequired[str]
    warnings: list[str]


class AnswerGateResult(TypedDict):
    intent_id: str
    node_id: str
    approved: bool


class AnswerGatePasskey(TypedDict):
    authenticator_data: str
    client_data: str
    signature: str


class ListQuestionsResultQuestionAskedFieldOption(TypedDict):
    value: str
    title: str


class ListQuestionsResultQuestionAskedField(TypedDict):
    name: str
    kind: Literal["text", "number", "integer", "boolean", "choice", "choices"]
    title: str
    description: NotRequired[str]
    required: bool
    default: NotRequired[str | Number | bool | list[str]]
    options: NotRequired[list[ListQuestionsResultQuestionAskedFieldOption]]
    format: NotRequired[Literal["email", "uri", "date", "date-time"]]
    min: NotRequired[Number]
    max: NotRequired[Number]


class ListQuestionsResultQuestionAsked(TypedDict):
    mode: Literal["form"]
    message: str
    fields: list[ListQuestionsResultQuestionAskedField]


class ListQuestionsResultQuestionAsked2(TypedDict):
    mode: Literal["url"]
    message: str
    url: str
    host: str


class ListQuestionsResultQuestion(TypedDict):
    question_id: str
    conversation_id: str
    turn_id: str
    server: str
    tool: str
    state: Literal["asked", "accepted", "declined", "lapsed"]
    asked: ListQuestionsResultQuestionAsked | ListQuestionsResultQuestionAsked2
    expires_at: str


class ListQuestionsResult(TypedDict):
    questions: list[ListQuestionsResultQuestion]


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


class HookResult(TypedDict):
    recorded: int
    known: int


class HealthResult(TypedDict):
    status: str


class AgentRoutes(Caller):
    """Forwards a request of a user to the daemon on their own machine, and starts that machine. Answers are those of the daemon."""

    def chat(self, *, message: str, conversation_id: str | Unset = UNSET, payload: Any | Unset = UNSET) -> AcceptedTurn:
        """Send a message; 202 once the turn is durable."""
        return cast("AcceptedTurn", self._call("POST", "/chat", body={"message": message, "conversation_id": conversation_id, "payload": payload}))

    def list_conversations(self, *, limit: int | Unset = UNSET, cursor: str | Unset = UNSET) -> ConversationPage:
        """Conversations, newest activity first."""
        return cast("ConversationPage", self._call("GET", "/conversations", query={"limit": limit, "cursor": cursor}))

    def get_conversation(self, id: str, *, limit: int | Unset = UNSET, cursor: str | Unset = UNSET) -> Conversation:
        """One conversation with its turns."""
        return cast("Conversation", self._call("GET", f"/conversations/{quoted(id)}", query={"limit": limit, "cursor": cursor}))

    def get_turn(self, id: str, turn_id: str) -> Turn:
        """One turn of a conversation, for clients that poll for its end."""
        return cast("Turn", self._call("GET", f"/conversations/{quoted(id)}/turns/{quoted(turn_id)}"))

    def cancel_turn(self, id: str) -> Turn:
        """End a turn permanently; one that has ended is returned unchanged."""
        return cast("Turn", self._call("POST", f"/turns/{quoted(id)}/cancel"))

    def tools(self) -> ToolsResult:
        """The functions that the model sees, the tools reached through core_execute alone, and warnings."""
        return cast("ToolsResult", self._call("GET", "/tools"))

    def answer_gate(self, id: str, nid: str, *, approved: bool, call_sha256: str, displayed_sha256: str, approver: str, expires_at: str, answer: str | Unset = UNSET, signature: str | Unset = UNSET, passkey: AnswerGatePasskey | Unset = UNSET) -> AnswerGateResult:
        """An approver's answer to a step that waits for it, signed by their key and passed on as it is; the first one counts."""
        return cast("AnswerGateResult", self._call("POST", f"/intents/{quoted(id)}/gates/{quoted(nid)}/answer", body={"approved": approved, "answer": answer, "call_sha256": call_sha256, "displayed_sha256": displayed_sha256, "approver": approver, "expires_at": expires_at, "signature": signature, "passkey": passkey}))

    def list_questions(self, *, conversation_id: str | Unset = UNSET) -> ListQuestionsResult:
        """Questions of MCP servers that wait for an answer of the person."""
        return cast("ListQuestionsResult", self._call("GET", "/questions", query={"conversation_id": conversation_id}))

    def answer_question(self, id: str, *, action: Literal["accept", "decline"], content: dict[str, str | Number | bool | list[str]] | Unset = UNSET) -> ListQuestionsResultQuestion:
        """The person's answer to a question of an MCP server; the first one counts."""
        return cast("ListQuestionsResultQuestion", self._call("POST", f"/questions/{quoted(id)}/answer", body={"action": action, "content": content}))

    def get_receipt(self, id: str) -> Receipt:
        """The receipt of a task of this agent, as the executor has it: "reveille receipt verify" reads it."""
        return cast("Receipt", self._call("GET", f"/intents/{quoted(id)}/receipt"))

    def hook(self, hook_id: str) -> HookResult:
        """An event for an alarm, from a sender that its signature or its secret address proves."""
        return cast("HookResult", self._call("POST", f"/hooks/{quoted(hook_id)}"))

    def heartbeat(self, hook_id: str) -> HookResult:
        """A heartbeat of an expected program."""
        return cast("HookResult", self._call("GET", f"/hooks/{quoted(hook_id)}"))

    def hook_signal(self, hook_id: str, signal: str) -> HookResult:
        """A signal of an expected program: start, log, fail, or its exit status."""
        return cast("HookResult", self._call("POST", f"/hooks/{quoted(hook_id)}/{quoted(signal)}"))

    def heartbeat_signal(self, hook_id: str, signal: str) -> HookResult:
        """A signal of an expected program: start, log, fail, or its exit status."""
        return cast("HookResult", self._call("GET", f"/hooks/{quoted(hook_id)}/{quoted(signal)}"))

    def calendar_feed(self, feed: str) -> Any:
        """The coming fires of a user, as an iCalendar file, for an app that has the secret address."""
        return cast("Any", self._call("GET", f"/calendar/{quoted(feed)}"))

    def health(self) -> HealthResult:
        """The process is alive."""
        return cast("HealthResult", self._call("GET", "/healthz"))
