# Generated from schemas/chronosd.openapi.json by "npm run schemas"; do not edit.
# ruff: noqa: E501
from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict, cast

from ._transport import UNSET, Caller, Number, Unset, quoted

class RotateKeyResult(TypedDict):
    did: str
    owner_user_id: str
    public_key: str
    revoked_public_key: str
    repeated: bool


class CreatedAlarmReading(TypedDict):
    text: str
    timezone: str
    next: list[str]


class CreatedAlarmHook(TypedDict):
    address: str
    verify: Literal["standard", "github", "path"]
    secret: NotRequired[str]


class CreatedAlarm(TypedDict):
    id: str
    next_fire_at: NotRequired[str]
    status: Literal["active", "paused", "fired", "cancelled", "failed"]
    deduped: bool
    timezone: NotRequired[str]
    reading: CreatedAlarmReading
    hook: NotRequired[CreatedAlarmHook]


class CreateAlarmCheckHttp(TypedDict):
    url: str
    method: NotRequired[Literal["GET", "HEAD"]]
    headers: NotRequired[dict[str, str]]
    status: NotRequired[int]
    etag: NotRequired[Literal["changed"]]
    pointer: NotRequired[str]
    equals: NotRequired[str | Number | bool | None]
    changed: NotRequired[Literal[True]]


class CreateAlarmCheckCommand(TypedDict):
    argv: list[str]
    timeout_seconds: NotRequired[int]
    network: NotRequired[bool]
    env: NotRequired[list[str]]


class CreateAlarmCheckPath(TypedDict):
    path: str


class CreateAlarmCheck(TypedDict):
    http: NotRequired[CreateAlarmCheckHttp]
    command: NotRequired[CreateAlarmCheckCommand]
    path: NotRequired[CreateAlarmCheckPath]
    on_error: NotRequired[Literal["wake", "skip"]]
    max_skips: NotRequired[int]
    wake_at_least_every: NotRequired[str]


class CreateAlarmEventFilter(TypedDict):
    pointer: str
    equals: NotRequired[str | Number | bool | None]


class CreateAlarmEvent(TypedDict):
    source: Literal["webhook"]
    verify: NotRequired[Literal["standard", "github", "path"]]
    secret: NotRequired[str]
    filter: NotRequired[CreateAlarmEventFilter]
    quiet_for: NotRequired[str]
    at_most_every: NotRequired[str]
    batch_up_to: NotRequired[int]
    deadline: NotRequired[str]
    repeat: NotRequired[Literal["once", "always"]]


class CreateAlarmEvent2(TypedDict):
    source: Literal["file"]
    path: str
    look_every: NotRequired[str]
    filter: NotRequired[CreateAlarmEventFilter]
    quiet_for: NotRequired[str]
    at_most_every: NotRequired[str]
    batch_up_to: NotRequired[int]
    deadline: NotRequired[str]
    repeat: NotRequired[Literal["once", "always"]]


class CreateAlarmEvent3(TypedDict):
    source: Literal["process"]
    pid: int
    look_every: NotRequired[str]
    filter: NotRequired[CreateAlarmEventFilter]
    quiet_for: NotRequired[str]
    at_most_every: NotRequired[str]
    batch_up_to: NotRequired[int]
    deadline: NotRequired[str]
    repeat: NotRequired[Literal["once", "always"]]


class CreateAlarmEvent4(TypedDict):
    source: Literal["alarm"]
    alarm: str
    on: NotRequired[Literal["finished", "failed", "missed", "any"]]
    filter: NotRequired[CreateAlarmEventFilter]
    quiet_for: NotRequired[str]
    at_most_every: NotRequired[str]
    batch_up_to: NotRequired[int]
    deadline: NotRequired[str]
    repeat: NotRequired[Literal["once", "always"]]


class CreateAlarmEvent5(TypedDict):
    source: Literal["mcp"]
    server: str
    name: str
    arguments: NotRequired[dict[str, Any]]
    delivery: NotRequired[Literal["poll", "webhook"]]
    look_every: NotRequired[str]
    filter: NotRequired[CreateAlarmEventFilter]
    quiet_for: NotRequired[str]
    at_most_every: NotRequired[str]
    batch_up_to: NotRequired[int]
    deadline: NotRequired[str]
    repeat: NotRequired[Literal["once", "always"]]


class CreateAlarmAfter(TypedDict):
    alarm: str
    on: NotRequired[Literal["finished", "failed", "missed", "any"]]
    delay_seconds: NotRequired[Number]


class CreateAlarmExpect(TypedDict):
    every: str
    grace: NotRequired[str]


class CreateAlarmRun(TypedDict):
    argv: list[str]
    timeout_seconds: NotRequired[int]


class AlarmSetBy(TypedDict):
    kind: Literal["person"]
    name: str


class AlarmSetBy2(TypedDict):
    kind: Literal["client"]
    client_id: str
    name: NotRequired[str]


class AlarmTextByLabel3(TypedDict):
    kind: Literal["agent"]


class AlarmTextBy(TypedDict):
    label: NotRequired[AlarmSetBy | AlarmSetBy2 | AlarmTextByLabel3]
    payload: NotRequired[AlarmSetBy | AlarmSetBy2 | AlarmTextByLabel3]


class AlarmMadeBy(TypedDict):
    client_id: str


class AlarmHeldBack(TypedDict):
    reason: str
    until: str


class AlarmHook(TypedDict):
    address: str
    verify: Literal["standard", "github", "path"]


class AlarmBackfillLeft(TypedDict):
    first: str
    last: str


class Alarm(TypedDict):
    id: str
    label: str
    kind: Literal["once", "cron", "rrule", "event"]
    cron_expr: NotRequired[str]
    rrule: NotRequired[str]
    timezone: NotRequired[str]
    fire_at: NotRequired[str]
    next_fire_at: NotRequired[str]
    conversation_id: NotRequired[str]
    wake_message: str
    payload: NotRequired[Any]
    status: Literal["active", "paused", "fired", "cancelled", "failed"]
    idempotency_key: NotRequired[str]
    max_failures: int
    failure_count: int
    last_error: NotRequired[str]
    created_at: str
    last_fired_at: NotRequired[str]
    fire_count: int
    in_flight: bool
    when: NotRequired[str]
    max_lateness_seconds: NotRequired[Number]
    jitter_seconds: NotRequired[Number]
    ends_at: NotRequired[str]
    max_fires: NotRequired[int]
    holidays: NotRequired[str]
    catch_up: NotRequired[Literal["latest", "all", "none"]]
    catch_up_window_seconds: NotRequired[Number]
    overlap: NotRequired[Literal["allow", "skip", "buffer_one", "buffer_all"]]
    pause_on_failure: NotRequired[bool]
    check: NotRequired[CreateAlarmCheck]
    event: NotRequired[CreateAlarmEvent | CreateAlarmEvent2 | CreateAlarmEvent3 | CreateAlarmEvent4 | CreateAlarmEvent5]
    after: NotRequired[CreateAlarmAfter]
    expect: NotRequired[CreateAlarmExpect]
    run: NotRequired[CreateAlarmRun]
    model: NotRequired[str]
    tools: NotRequired[list[str]]
    deliver: NotRequired[list[str]]
    urgent: NotRequired[bool]
    wake_computer: NotRequired[bool]
    set_by: NotRequired[AlarmSetBy | AlarmSetBy2]
    text_by: NotRequired[AlarmTextBy]
    made_by: NotRequired[AlarmMadeBy]
    waits_for: NotRequired[str]
    waiting_events: NotRequired[int]
    held_back: NotRequired[AlarmHeldBack]
    hook: NotRequired[AlarmHook]
    starts_at: NotRequired[str]
    holidays_missing: NotRequired[Literal[True]]
    holidays_ended: NotRequired[str]
    backfill_left: NotRequired[AlarmBackfillLeft]


class AlarmPage(TypedDict):
    alarms: list[Alarm]
    count: int
    next_cursor: NotRequired[str]


class PreviewAlarmResultOccurrence(TypedDict):
    at: str
    local: str
    note: NotRequired[str]


class PreviewAlarmResult(TypedDict):
    kind: Literal["once", "cron", "rrule", "event"]
    text: str
    timezone: str
    reading: CreatedAlarmReading
    occurrences: list[PreviewAlarmResultOccurrence]
    left_out: NotRequired[list[PreviewAlarmResultOccurrence]]
    notes: list[str]


class AlarmTotalsResult(TypedDict):
    active: int
    wakes_per_day: int
    at_least: NotRequired[Literal[True]]


class AlarmMarkResult(TypedDict):
    mark: NotRequired[str]


class PatchAlarmResult(TypedDict):
    id: str
    label: str
    kind: Literal["once", "cron", "rrule", "event"]
    cron_expr: NotRequired[str]
    rrule: NotRequired[str]
    timezone: NotRequired[str]
    fire_at: NotRequired[str]
    next_fire_at: NotRequired[str]
    conversation_id: NotRequired[str]
    wake_message: str
    payload: NotRequired[Any]
    status: Literal["active", "paused", "fired", "cancelled", "failed"]
    idempotency_key: NotRequired[str]
    max_failures: int
    failure_count: int
    last_error: NotRequired[str]
    created_at: str
    last_fired_at: NotRequired[str]
    fire_count: int
    in_flight: bool
    when: NotRequired[str]
    max_lateness_seconds: NotRequired[Number]
    jitter_seconds: NotRequired[Number]
    ends_at: NotRequired[str]
    max_fires: NotRequired[int]
    holidays: NotRequired[str]
    catch_up: NotRequired[Literal["latest", "all", "none"]]
    catch_up_window_seconds: NotRequired[Number]
    overlap: NotRequired[Literal["allow", "skip", "buffer_one", "buffer_all"]]
    pause_on_failure: NotRequired[bool]
    check: NotRequired[CreateAlarmCheck]
    event: NotRequired[CreateAlarmEvent | CreateAlarmEvent2 | CreateAlarmEvent3 | CreateAlarmEvent4 | CreateAlarmEvent5]
    after: NotRequired[CreateAlarmAfter]
    expect: NotRequired[CreateAlarmExpect]
    run: NotRequired[CreateAlarmRun]
    model: NotRequired[str]
    tools: NotRequired[list[str]]
    deliver: NotRequired[list[str]]
    urgent: NotRequired[bool]
    wake_computer: NotRequired[bool]
    set_by: NotRequired[AlarmSetBy | AlarmSetBy2]
    text_by: NotRequired[AlarmTextBy]
    made_by: NotRequired[AlarmMadeBy]
    waits_for: NotRequired[str]
    waiting_events: NotRequired[int]
    held_back: NotRequired[AlarmHeldBack]
    hook: NotRequired[CreatedAlarmHook]
    starts_at: NotRequired[str]
    holidays_missing: NotRequired[Literal[True]]
    holidays_ended: NotRequired[str]
    backfill_left: NotRequired[AlarmBackfillLeft]
    reading: NotRequired[CreatedAlarmReading]


class TriggeredAlarm(TypedDict):
    id: str
    label: str
    kind: Literal["once", "cron", "rrule", "event"]
    cron_expr: NotRequired[str]
    rrule: NotRequired[str]
    timezone: NotRequired[str]
    fire_at: NotRequired[str]
    next_fire_at: NotRequired[str]
    conversation_id: NotRequired[str]
    wake_message: str
    payload: NotRequired[Any]
    status: Literal["active", "paused", "fired", "cancelled", "failed"]
    idempotency_key: NotRequired[str]
    max_failures: int
    failure_count: int
    last_error: NotRequired[str]
    created_at: str
    last_fired_at: NotRequired[str]
    fire_count: int
    in_flight: bool
    when: NotRequired[str]
    max_lateness_seconds: NotRequired[Number]
    jitter_seconds: NotRequired[Number]
    ends_at: NotRequired[str]
    max_fires: NotRequired[int]
    holidays: NotRequired[str]
    catch_up: NotRequired[Literal["latest", "all", "none"]]
    catch_up_window_seconds: NotRequired[Number]
    overlap: NotRequired[Literal["allow", "skip", "buffer_one", "buffer_all"]]
    pause_on_failure: NotRequired[bool]
    check: NotRequired[CreateAlarmCheck]
    event: NotRequired[CreateAlarmEvent | CreateAlarmEvent2 | CreateAlarmEvent3 | CreateAlarmEvent4 | CreateAlarmEvent5]
    after: NotRequired[CreateAlarmAfter]
    expect: NotRequired[CreateAlarmExpect]
    run: NotRequired[CreateAlarmRun]
    model: NotRequired[str]
    tools: NotRequired[list[str]]
    deliver: NotRequired[list[str]]
    urgent: NotRequired[bool]
    wake_computer: NotRequired[bool]
    set_by: NotRequired[AlarmSetBy | AlarmSetBy2]
    text_by: NotRequired[AlarmTextBy]
    made_by: NotRequired[AlarmMadeBy]
    waits_for: NotRequired[str]
    waiting_events: NotRequired[int]
    held_back: NotRequired[AlarmHeldBack]
    hook: NotRequired[AlarmHook]
    starts_at: NotRequired[str]
    holidays_missing: NotRequired[Literal[True]]
    holidays_ended: NotRequired[str]
    backfill_left: NotRequired[AlarmBackfillLeft]
    fire_id: str


class BackfillAlarmResultBackfill(TypedDict):
    added: int
    known: int
    first: NotRequired[str]
    last: NotRequired[str]
    dry_run: NotRequired[Literal[True]]


class BackfillAlarmResult(TypedDict):
    id: str
    label: str
    kind: Literal["once", "cron", "rrule", "event"]
    cron_expr: NotRequired[str]
    rrule: NotRequired[str]
    timezone: NotRequired[str]
    fire_at: NotRequired[str]
    next_fire_at: NotRequired[str]
    conversation_id: NotRequired[str]
    wake_message: str
    payload: NotRequired[Any]
    status: Literal["active", "paused", "fired", "cancelled", "failed"]
    idempotency_key: NotRequired[str]
    max_failures: int
    failure_count: int
    last_error: NotRequired[str]
    created_at: str
    last_fired_at: NotRequired[str]
    fire_count: int
    in_flight: bool
    when: NotRequired[str]
    max_lateness_seconds: NotRequired[Number]
    jitter_seconds: NotRequired[Number]
    ends_at: NotRequired[str]
    max_fires: NotRequired[int]
    holidays: NotRequired[str]
    catch_up: NotRequired[Literal["latest", "all", "none"]]
    catch_up_window_seconds: NotRequired[Number]
    overlap: NotRequired[Literal["allow", "skip", "buffer_one", "buffer_all"]]
    pause_on_failure: NotRequired[bool]
    check: NotRequired[CreateAlarmCheck]
    event: NotRequired[CreateAlarmEvent | CreateAlarmEvent2 | CreateAlarmEvent3 | CreateAlarmEvent4 | CreateAlarmEvent5]
    after: NotRequired[CreateAlarmAfter]
    expect: NotRequired[CreateAlarmExpect]
    run: NotRequired[CreateAlarmRun]
    model: NotRequired[str]
    tools: NotRequired[list[str]]
    deliver: NotRequired[list[str]]
    urgent: NotRequired[bool]
    wake_computer: NotRequired[bool]
    set_by: NotRequired[AlarmSetBy | AlarmSetBy2]
    text_by: NotRequired[AlarmTextBy]
    made_by: NotRequired[AlarmMadeBy]
    waits_for: NotRequired[str]
    waiting_events: NotRequired[int]
    held_back: NotRequired[AlarmHeldBack]
    hook: NotRequired[AlarmHook]
    starts_at: NotRequired[str]
    holidays_missing: NotRequired[Literal[True]]
    holidays_ended: NotRequired[str]
    backfill_left: NotRequired[AlarmBackfillLeft]
    backfill: BackfillAlarmResultBackfill


class FireCause(TypedDict):
    by: Literal["person", "agent", "client", "sender", "address", "source"]
    client_id: NotRequired[str]
    clock: NotRequired[Literal[True]]


class FireTurnWaits(TypedDict):
    at: str
    retry_at: str
    error: NotRequired[str]


class FireTurnUsage(TypedDict):
    input_tokens: int
    output_tokens: int
    cost_usd: NotRequired[Number]
    incomplete: NotRequired[Literal[True]]


class FireTurn(TypedDict):
    turn_id: NotRequired[str]
    conversation_id: NotRequired[str]
    started_at: NotRequired[str]
    finished_at: NotRequired[str]
    ok: NotRequired[bool]
    error: NotRequired[str]
    waits: NotRequired[FireTurnWaits]
    reply: NotRequired[str]
    usage: NotRequired[FireTurnUsage]


class Fire(TypedDict):
    fire_id: str
    scheduled_for: str
    attempt: int
    started_at: str
    finished_at: str
    lateness_ms: Number
    late_because: NotRequired[Literal["slept", "not_running", "stalled"]]
    outcome: Literal["delivered", "failed", "unknown", "missed", "skipped"]
    http_status: NotRequired[int]
    error: NotRequired[str]
    missed_count: NotRequired[int]
    cause: NotRequired[FireCause]
    machine_ready_at: NotRequired[str]
    accepted_at: NotRequired[str]
    reached: NotRequired[Literal["machine_ready", "accepted", "turn_started", "turn_finished"]]
    turn: NotRequired[FireTurn]


class FirePage(TypedDict):
    fires: list[Fire]
    next_cursor: NotRequired[str]


class EndClientResult(TypedDict):
    alarms: int
    addresses: int


class GetCalendarResult(TypedDict):
    name: str
    timezone: str
    days: list[str]


class CreateFeedResult(TypedDict):
    id: str
    name: str
    messages: bool
    created_at: str
    address: str


class ListFeedsResultFeed(TypedDict):
    id: str
    name: str
    messages: bool
    created_at: str


class ListFeedsResult(TypedDict):
    feeds: list[ListFeedsResultFeed]


class HookResult(TypedDict):
    recorded: int
    known: int


class HealthResult(TypedDict):
    status: str


class ChronosdRoutes(Caller):
    """Keeps alarms durably and fires them on time."""

    def rotate_key(self, *, did: str, public_key: str, new_public_key: str, nonce: str, signature: str, new_signature: str) -> RotateKeyResult:
        """Replace a key by one that it signs: the new key is enrolled and the old one revoked."""
        return cast("RotateKeyResult", self._call("POST", "/v1/agent/auth/rotate", body={"did": did, "public_key": public_key, "new_public_key": new_public_key, "nonce": nonce, "signature": signature, "new_signature": new_signature}))

    def create_alarm(self, *, wake_message: str, kind: Literal["once", "cron", "rrule", "event"] | Unset = UNSET, label: str | Unset = UNSET, when: str | Unset = UNSET, delay_seconds: Number | Unset = UNSET, fire_at: str | Unset = UNSET, cron_expr: str | Unset = UNSET, rrule: str | Unset = UNSET, timezone: str | Unset = UNSET, conversation_id: str | Unset = UNSET, payload: Any | Unset = UNSET, idempotency_key: str | Unset = UNSET, max_failures: int | Unset = UNSET, max_lateness_seconds: Number | Unset = UNSET, jitter_seconds: Number | Unset = UNSET, ends_at: str | Unset = UNSET, max_fires: int | Unset = UNSET, holidays: str | Unset = UNSET, catch_up: Literal["latest", "all", "none"] | Unset = UNSET, catch_up_window_seconds: Number | Unset = UNSET, overlap: Literal["allow", "skip", "buffer_one", "buffer_all"] | Unset = UNSET, pause_on_failure: bool | Unset = UNSET, check: CreateAlarmCheck | Unset = UNSET, event: CreateAlarmEvent | CreateAlarmEvent2 | CreateAlarmEvent3 | CreateAlarmEvent4 | CreateAlarmEvent5 | Unset = UNSET, after: CreateAlarmAfter | Unset = UNSET, expect: CreateAlarmExpect | Unset = UNSET, run: CreateAlarmRun | Unset = UNSET, model: str | Unset = UNSET, tools: list[str] | Unset = UNSET, deliver: list[str] | Unset = UNSET, urgent: bool | Unset = UNSET, wake_computer: bool | Unset = UNSET) -> CreatedAlarm:
        """Set an alarm; acknowledged once it is durable."""
        return cast("CreatedAlarm", self._call("POST", "/v1/alarms", body={"kind": kind, "wake_message": wake_message, "label": label, "when": when, "delay_seconds": delay_seconds, "fire_at": fire_at, "cron_expr": cron_expr, "rrule": rrule, "timezone": timezone, "conversation_id": conversation_id, "payload": payload, "idempotency_key": idempotency_key, "max_failures": max_failures, "max_lateness_seconds": max_lateness_seconds, "jitter_seconds": jitter_seconds, "ends_at": ends_at, "max_fires": max_fires, "holidays": holidays, "catch_up": catch_up, "catch_up_window_seconds": catch_up_window_seconds, "overlap": overlap, "pause_on_failure": pause_on_failure, "check": check, "event": event, "after": after, "expect": expect, "run": run, "model": model, "tools": tools, "deliver": deliver, "urgent": urgent, "wake_computer": wake_computer}, proven=True))

    def list_alarms(self, *, limit: int | Unset = UNSET, status: Literal["active", "paused", "fired", "cancelled", "failed"] | Unset = UNSET, kind: Literal["once", "cron", "rrule", "event"] | Unset = UNSET, cursor: str | Unset = UNSET, text: str | Unset = UNSET, sort: Literal["newest", "next"] | Unset = UNSET, until: str | Unset = UNSET) -> AlarmPage:
        """Your alarms, newest first."""
        return cast("AlarmPage", self._call("GET", "/v1/alarms", query={"limit": limit, "status": status, "kind": kind, "cursor": cursor, "text": text, "sort": sort, "until": until}, proven=True))

    def preview_alarm(self, *, kind: Literal["once", "cron", "rrule", "event"] | Unset = UNSET, wake_message: str | Unset = UNSET, label: str | Unset = UNSET, when: str | Unset = UNSET, delay_seconds: Number | Unset = UNSET, fire_at: str | Unset = UNSET, cron_expr: str | Unset = UNSET, rrule: str | Unset = UNSET, timezone: str | Unset = UNSET, conversation_id: str | Unset = UNSET, payload: Any | Unset = UNSET, idempotency_key: str | Unset = UNSET, max_failures: int | Unset = UNSET, max_lateness_seconds: Number | Unset = UNSET, jitter_seconds: Number | Unset = UNSET, ends_at: str | Unset = UNSET, max_fires: int | Unset = UNSET, holidays: str | Unset = UNSET, catch_up: Literal["latest", "all", "none"] | Unset = UNSET, catch_up_window_seconds: Number | Unset = UNSET, overlap: Literal["allow", "skip", "buffer_one", "buffer_all"] | Unset = UNSET, pause_on_failure: bool | Unset = UNSET, check: CreateAlarmCheck | Unset = UNSET, event: CreateAlarmEvent | CreateAlarmEvent2 | CreateAlarmEvent3 | CreateAlarmEvent4 | CreateAlarmEvent5 | Unset = UNSET, after: CreateAlarmAfter | Unset = UNSET, expect: CreateAlarmExpect | Unset = UNSET, run: CreateAlarmRun | Unset = UNSET, model: str | Unset = UNSET, tools: list[str] | Unset = UNSET, deliver: list[str] | Unset = UNSET, urgent: bool | Unset = UNSET, wake_computer: bool | Unset = UNSET, count: int | Unset = UNSET, from_: str | Unset = UNSET) -> PreviewAlarmResult:
        """When an alarm would fire; stores nothing."""
        return cast("PreviewAlarmResult", self._call("POST", "/v1/alarms/preview", body={"kind": kind, "wake_message": wake_message, "label": label, "when": when, "delay_seconds": delay_seconds, "fire_at": fire_at, "cron_expr": cron_expr, "rrule": rrule, "timezone": timezone, "conversation_id": conversation_id, "payload": payload, "idempotency_key": idempotency_key, "max_failures": max_failures, "max_lateness_seconds": max_lateness_seconds, "jitter_seconds": jitter_seconds, "ends_at": ends_at, "max_fires": max_fires, "holidays": holidays, "catch_up": catch_up, "catch_up_window_seconds": catch_up_window_seconds, "overlap": overlap, "pause_on_failure": pause_on_failure, "check": check, "event": event, "after": after, "expect": expect, "run": run, "model": model, "tools": tools, "deliver": deliver, "urgent": urgent, "wake_computer": wake_computer, "count": count, "from": from_}, proven=True))

    def alarm_totals(self) -> AlarmTotalsResult:
        """How many alarms are active, and how often they wake in the next 24 hours."""
        return cast("AlarmTotalsResult", self._call("GET", "/v1/alarms/totals", proven=True))

    def alarm_mark(self) -> AlarmMarkResult:
        """For clients of 0.1.0, and without a mark, so that they read the alarms; follow GET /v1/events instead."""
        return cast("AlarmMarkResult", self._call("GET", "/v1/alarm-mark", proven=True))

    def get_alarm(self, id: str) -> Alarm:
        """One alarm."""
        return cast("Alarm", self._call("GET", f"/v1/alarms/{quoted(id)}", proven=True))

    def patch_alarm(self, id: str, *, wake_message: str | Unset = UNSET, label: str | None | Unset = UNSET, when: str | Unset = UNSET, delay_seconds: Number | Unset = UNSET, fire_at: str | Unset = UNSET, cron_expr: str | Unset = UNSET, rrule: str | Unset = UNSET, timezone: str | None | Unset = UNSET, conversation_id: str | None | Unset = UNSET, payload: Any | Unset = UNSET, max_failures: int | None | Unset = UNSET, max_lateness_seconds: Number | None | Unset = UNSET, jitter_seconds: Number | None | Unset = UNSET, ends_at: str | None | Unset = UNSET, max_fires: int | None | Unset = UNSET, holidays: str | None | Unset = UNSET, catch_up: Literal["latest", "all", "none"] | None | Unset = UNSET, catch_up_window_seconds: Number | None | Unset = UNSET, overlap: Literal["allow", "skip", "buffer_one", "buffer_all"] | None | Unset = UNSET, pause_on_failure: bool | None | Unset = UNSET, check: CreateAlarmCheck | None | Unset = UNSET, event: CreateAlarmEvent | CreateAlarmEvent2 | CreateAlarmEvent3 | CreateAlarmEvent4 | CreateAlarmEvent5 | Unset = UNSET, after: CreateAlarmAfter | Unset = UNSET, expect: CreateAlarmExpect | Unset = UNSET, run: CreateAlarmRun | None | Unset = UNSET, model: str | None | Unset = UNSET, tools: list[str] | None | Unset = UNSET, deliver: list[str] | None | Unset = UNSET, urgent: bool | None | Unset = UNSET, wake_computer: bool | None | Unset = UNSET, kind: Any | Unset = UNSET, idempotency_key: Any | Unset = UNSET) -> PatchAlarmResult:
        """Edit an alarm."""
        return cast("PatchAlarmResult", self._call("PATCH", f"/v1/alarms/{quoted(id)}", body={"wake_message": wake_message, "label": label, "when": when, "delay_seconds": delay_seconds, "fire_at": fire_at, "cron_expr": cron_expr, "rrule": rrule, "timezone": timezone, "conversation_id": conversation_id, "payload": payload, "max_failures": max_failures, "max_lateness_seconds": max_lateness_seconds, "jitter_seconds": jitter_seconds, "ends_at": ends_at, "max_fires": max_fires, "holidays": holidays, "catch_up": catch_up, "catch_up_window_seconds": catch_up_window_seconds, "overlap": overlap, "pause_on_failure": pause_on_failure, "check": check, "event": event, "after": after, "expect": expect, "run": run, "model": model, "tools": tools, "deliver": deliver, "urgent": urgent, "wake_computer": wake_computer, "kind": kind, "idempotency_key": idempotency_key}, proven=True))

    def cancel_alarm(self, id: str) -> Alarm:
        """Cancel an alarm."""
        return cast("Alarm", self._call("DELETE", f"/v1/alarms/{quoted(id)}", proven=True))

    def pause_alarm(self, id: str) -> Alarm:
        """Suspend the schedule."""
        return cast("Alarm", self._call("POST", f"/v1/alarms/{quoted(id)}/pause", proven=True))

    def resume_alarm(self, id: str) -> Alarm:
        """Resume the schedule."""
        return cast("Alarm", self._call("POST", f"/v1/alarms/{quoted(id)}/resume", proven=True))

    def trigger_alarm(self, id: str) -> TriggeredAlarm:
        """Fire now, in addition to the schedule."""
        return cast("TriggeredAlarm", self._call("POST", f"/v1/alarms/{quoted(id)}/trigger", proven=True))

    def backfill_alarm(self, id: str, *, from_: str, to: str, confirm_over: bool | Unset = UNSET, dry_run: bool | Unset = UNSET) -> BackfillAlarmResult:
        """Fire a series for its instants in a part of the past; dry_run only counts them."""
        return cast("BackfillAlarmResult", self._call("POST", f"/v1/alarms/{quoted(id)}/backfill", body={"from": from_, "to": to, "confirm_over": confirm_over, "dry_run": dry_run}, proven=True))

    def redrive_alarm(self, id: str) -> Alarm:
        """Re-arm a failed alarm under the same fire id."""
        return cast("Alarm", self._call("POST", f"/v1/alarms/{quoted(id)}/redrive", proven=True))

    def list_fires(self, id: str, *, limit: int | Unset = UNSET, cursor: str | Unset = UNSET) -> FirePage:
        """The attempts at its occurrences, latest first."""
        return cast("FirePage", self._call("GET", f"/v1/alarms/{quoted(id)}/fires", query={"limit": limit, "cursor": cursor}, proven=True))

    def end_client(self, *, client_id: str) -> EndClientResult:
        """Pause the alarms of a program whose access was revoked, and end their addresses."""
        return cast("EndClientResult", self._call("POST", "/v1/clients/end", body={"client_id": client_id}, proven=True))

    def get_calendar(self, name: str, *, timezone: str | Unset = UNSET) -> GetCalendarResult:
        """The days of an installed calendar, from yesterday on."""
        return cast("GetCalendarResult", self._call("GET", f"/v1/calendars/{quoted(name)}", query={"timezone": timezone}, proven=True))

    def create_feed(self, *, name: str | Unset = UNSET, messages: bool | Unset = UNSET) -> CreateFeedResult:
        """An address at which calendar apps read your coming fires; only for a person."""
        return cast("CreateFeedResult", self._call("POST", "/v1/calendar-feeds", body={"name": name, "messages": messages}, proven=True))

    def list_feeds(self) -> ListFeedsResult:
        """Your calendar feeds, without their addresses."""
        return cast("ListFeedsResult", self._call("GET", "/v1/calendar-feeds", proven=True))

    def remove_feed(self, id: str) -> ListFeedsResultFeed:
        """Revoke a calendar feed: its address answers 404."""
        return cast("ListFeedsResultFeed", self._call("DELETE", f"/v1/calendar-feeds/{quoted(id)}", proven=True))

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
