/**
 * `import { VERSION } from 'reveille'`: the version, the error type, and the types of messages between processes. It loads
 * almost nothing; functions are in `reveille/client`, `reveille/verify` and `reveille/tools`.
 *
 * An agent that is woken declares its request type:
 *
 * ```ts
 * import type { ChatRequest } from 'reveille';
 *
 * const chat: ChatRequest = await request.json();
 * if (chat.origin === 'chronos') console.log(`alarm ${chat.alarm_id} woke me: ${chat.message}`);
 * ```
 */
export type {
  AlarmBackfilled,
  AlarmCreated,
  AlarmPreview,
  AlarmSort,
  AlarmView,
  FireOutcome,
  FireStage,
  FireView,
} from '../wire/alarm.ts';
export type { AlarmKind, AlarmStatus, CatchUp, Overlap } from '../wire/alarm-fields.ts';
export type { Budget, QuietHours } from '../wire/budget.ts';
/** The fields `check`, `event`, `after`, `expect` and `run` of an alarm. */
export type { After, ChainOutcome, Check, EventSource, Expect, Run } from '../wire/conditions.ts';
export { type ErrorCode, ReveilleError, STATUS_OF } from '../wire/errors.ts';
export type { GateAnswer, IntentRequest, IntentStatus } from '../wire/executor.ts';
export type { IntentReceipt, ReceiptEnvelope, ReceiptKind } from '../wire/intent-receipt.ts';
export { RawJson } from '../wire/json.ts';
export type { MachineState } from '../wire/machine.ts';
export type { TurnEventData, TurnEventType, TurnStatus, TurnView } from '../wire/turn.ts';
export { VERSION } from '../wire/version.ts';
/** The router's request to an agent's `/chat`, the response, and the response of `/healthz`. */
export type { ChatAccepted, ChatRequest, DaemonHealth } from '../wire/wake.ts';
