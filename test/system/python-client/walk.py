"""Uses a running Reveille from Python; each step prints one JSON line. Run by python-client.test.ts."""
import json
import os
import sys
from decimal import Decimal

from reveille import Agent, Chronosd, Executor, ReveilleError
from reveille.identity import Identity

given = json.loads(os.environ["GIVEN"])


def said(step: str, **what: object) -> None:
    print(json.dumps({"step": step, **what}, default=str), flush=True)


def refused(call: object) -> dict[str, object]:
    try:
        call()  # type: ignore[operator]
    except ReveilleError as error:
        return {"code": error.code, "retryable": error.retryable}
    return {"code": None}


identity = Identity.from_file(given["label"], given["key_file"])
said("identity", did=identity.did, hidden=given["seed"] not in repr(identity))
chronosd = Chronosd(given["chronos_url"], given["chronos_token"], identity)
payload = {"price": Decimal("0.10"), "big": 12345678901234567890, "words": "für Ä 🎈"}
alarm = chronosd.create_alarm(
    kind="once", wake_message="Say good morning", delay_seconds=600, payload=payload, idempotency_key="once-only"
)
again = chronosd.create_alarm(
    kind="once", wake_message="Say good morning", delay_seconds=600, payload=payload, idempotency_key="once-only"
)
said("created", deduped=[alarm["deduped"], again["deduped"]], same=alarm["id"] == again["id"])
read = chronosd.get_alarm(alarm["id"])
said("read", payload=read.get("payload") == payload, digits=str(read["payload"]["price"]))
changed = chronosd.patch_alarm(alarm["id"], label="morning", urgent=True)
said("changed", label=changed["label"], urgent=changed.get("urgent"))
said("unlabelled", label=chronosd.patch_alarm(alarm["id"], label=None).get("label"))
said("listed", count=chronosd.list_alarms(status="active", limit=10, text="morning")["count"])
said("cancelled", status=chronosd.cancel_alarm(alarm["id"])["status"])
leads_out = []
for alarm_id in ("", ".", ".."):
    try:
        chronosd.get_alarm(alarm_id)
        leads_out.append(alarm_id)
    except ValueError:
        pass
said("leads out", accepted=leads_out)
said("no such alarm", **refused(lambda: chronosd.get_alarm("019ed2b4-7c11-7000-8000-000000000000")))
said("wrong token", **refused(lambda: Chronosd(given["chronos_url"], "x" * 32, identity).list_alarms()))
said("nobody there", **refused(lambda: Agent("http://127.0.0.1:9", "x" * 32).tools()))

agent = Agent(given["agent_url"], given["agent_token"])
turn = agent.ask("Good morning")
said("turn", status=turn["status"], echoed="Good morning" in turn.get("reply", ""))
events = agent.events(conversation_id=turn["conversation_id"], after="0")
finished = next(event for event in events if event.type == "turn" and event.data["status"] == "done")
said("event", conversation=finished.data["conversation_id"] == turn["conversation_id"], resumable=finished.id is not None)
listed = agent.list_conversations()["conversations"]
said("conversations", listed=turn["conversation_id"] in [one["id"] for one in listed])

executor = Executor(given["executor_url"], given["submitter_token"], given["label"])
intent = {"id": "pay", "kind": "call", "tool": "ledger/transfer"}
intent["args"] = {"from": "alice", "to": "bob", "amount": "25.00", "currency": "EUR"}
accepted = executor.submit(intent={"verb": "pay", "plan": intent}, idempotency_key="pay-once")
said("submitted", intent_id=bool(accepted["intent_id"]))
said("cancelled intent", status=executor.cancel_intent(accepted["intent_id"], reason="a try")["status"])
sys.exit(0)
