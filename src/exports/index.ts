/**
 * What `import { VERSION } from 'reveille'` gives: the version, the one error type, and the types of what crosses a
 * process boundary. It loads next to nothing; what does something is behind `reveille/client`, `reveille/verify` and
 * `reveille/tools`.
 *
 * An agent that is woken declares what it is posted like this:
 *
 * ```ts
 * import type { ChatRequest } from 'reveille';
 *
 * const chat: ChatRequest = await request.json();
 * if (chat.origin === 'chronos') console.log(`alarm ${chat.alarm_id} woke me: ${chat.message}`);
 * ```
 */
export type {
  AlarmCreated,
  AlarmKind,
  AlarmSort,
  AlarmStatus,
  AlarmView,
  FireOutcome,
  FireStage,
  FireView,
} from '../wire/alarm.ts';
export type { Budget, QuietHours } from '../wire/budget.ts';
export { type ErrorCode, ReveilleError, STATUS_OF } from '../wire/errors.ts';
export type { GateAnswer, IntentRequest, IntentStatus } from '../wire/executor.ts';
export type { IntentReceipt, ReceiptEnvelope, ReceiptKind } from '../wire/intent-receipt.ts';
export { RawJson } from '../wire/json.ts';
export type { MachineState } from '../wire/machine.ts';
export type { TurnEventData, TurnEventType, TurnStatus, TurnView } from '../wire/turn.ts';
export { VERSION } from '../wire/version.ts';
/** What a router posts to an agent's `/chat`, what it answers, and what it says of itself at `/healthz`. */
export type { ChatAccepted, ChatRequest, DaemonHealth } from '../wire/wake.ts';
