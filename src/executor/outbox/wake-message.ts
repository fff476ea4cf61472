/**
 * The message and payload that wake an agent when an intent that it parked has ended. Pure: the same text on every
 * attempt.
 */
import { clip } from '../../kit/text/excerpt.ts';
import type { ReceiptPointer } from '../../wire/executor.ts';
import type { IntentReceipt } from '../../wire/intent-receipt.ts';
import { encodeJson, RawJson } from '../../wire/json.ts';
import type { IntentState, IntentView } from '../rail.ts';

/** Together below the 64 KiB of an alarm's message, even when JSON escapes a character with six. In UTF-16 units. */
const LONGEST_TASK = 1000;
const LONGEST_ANSWER = 300;
const LONGEST_REASON = 2000;
/** A longer result is omitted: a payload has 64 KiB, and a character may take six bytes. */
const LONGEST_RESULT = 8000;
/** Number of decisions in the message, the latest ones. */
const DECISIONS_MAX = 10;

function taskOf({ prose, intent }: IntentView): string {
  // A JSON string stays on one line, whatever it contains.
  if (prose !== undefined) return JSON.stringify(clip(prose, LONGEST_TASK));
  return intent === undefined ? 'an intent given as JSON' : JSON.stringify(clip(intent.verb, LONGEST_TASK));
}

/** Replaces line breaks, so that the text stays on one line. */
const inLine = (text: string) => text.replaceAll(/\s+/g, ' ').trim();

function decisionOf({ kind, body }: IntentReceipt['envelopes'][number]): string | undefined {
  const { node_id: step, at, by, answer, approved } = body;
  if (kind === 'gate.expired') return `The question about the step ${step} expired at ${at} without an answer.`;
  if (kind !== 'gate.answered') return undefined;
  const withAnswer =
    typeof answer === 'string' ? `, with the answer ${JSON.stringify(clip(answer, LONGEST_ANSWER))}` : '';
  return `The step ${step} was ${approved === true ? 'approved' : 'denied'} by ${by} at ${at}${withAnswer}.`;
}

/** The decisions in chronological order. */
function decisionsOf({ envelopes }: IntentReceipt): string[] {
  const decisions = envelopes.map(decisionOf).filter((decision) => decision !== undefined);
  const omitted = decisions.length - DECISIONS_MAX;
  return [
    ...(omitted > 0 ? [`${omitted} earlier decisions are in the receipt.`] : []),
    ...decisions.slice(-DECISIONS_MAX),
  ];
}

const reasonOf = ({ error }: IntentState) =>
  error === undefined ? '' : ` Reason: ${clip(inLine(error.message), LONGEST_REASON)}`;

/** The outcome and its consequence for the agent. */
function outcomeOf(view: IntentView): string[] {
  const { status, clarify, intent_id: id } = view;
  if (clarify !== undefined) {
    return [
      `It was not planned, and nothing was carried out. The executor asks: ${clip(inLine(clarify), LONGEST_REASON)}`,
      'Ask a person; submit a new task with their answer.',
    ];
  }
  switch (status) {
    case 'completed':
      return [
        'It was completed; the payload contains the results of the tools.',
        'It is done: do not submit it again.',
      ];
    case 'denied':
      return [`It was denied.${reasonOf(view)}`, 'Do not submit it again unless a person asks for it.'];
    case 'cancelled':
      return [`It was cancelled.${reasonOf(view)}`, 'Do not submit it again unless a person asks for it.'];
    case 'unknown':
      return [
        `Its outcome is unknown: a step may or may not have been carried out.${reasonOf(view)}`,
        `Do not submit it again: it could be done twice. A person has to check; "reveille intent reconcile ${id}" queries the tools again.`,
      ];
    default:
      return [`It failed.${reasonOf(view)}`, 'Do not submit it again unless a person asks for it.'];
  }
}

/**
 * The payload of the alarm. Output of tools is here, as data, and not in the message, which the agent reads as its own
 * words.
 */
export function wakePayload({ intent_id, status, result, receipt }: IntentView): RawJson {
  const base = { intent_id, status, receipt };
  const full = encodeJson({ ...base, ...(result === undefined ? {} : { result }) });
  if (full.length <= LONGEST_RESULT) return new RawJson(full);
  return new RawJson(encodeJson({ ...base, result_left_out: `it is ${full.length} characters long` }));
}

const receiptText = ({ sha256, path }: ReceiptPointer) =>
  `Its receipt has the digest ${sha256}; a person fetches it with GET ${path} from this agent.`;

/** The message of the alarm. */
export function wakeMessage(view: IntentView, receipt: IntentReceipt): string {
  return [
    `A task that I submitted to the executor and did not wait for has ended: intent ${view.intent_id}.`,
    `The task: ${taskOf(view)}`,
    ...decisionsOf(receipt),
    ...outcomeOf(view),
    ...(view.receipt === undefined ? [] : [receiptText(view.receipt)]),
    'This message is from the executor.',
  ].join('\n');
}
