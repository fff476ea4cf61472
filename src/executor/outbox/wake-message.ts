/**
 * What an agent is told when it is woken about an intent that it waited for no more. Pure: the same words on every
 * attempt.
 */
import { clip } from '../../kit/text/excerpt.ts';
import type { ReceiptPointer } from '../../wire/executor.ts';
import type { IntentReceipt } from '../../wire/intent-receipt.ts';
import { encodeJson, RawJson } from '../../wire/json.ts';
import type { IntentState, IntentView } from '../rail.ts';

/**
 * Together they stay below the 64 KiB of an alarm's message, also where JSON writes a character with six. In UTF-16
 * units.
 */
const LONGEST_TASK = 1000;
const LONGEST_ANSWER = 300;
const LONGEST_REASON = 2000;
/** A longer result is left out: a payload has 64 KiB, and a character may take six bytes of it. */
const LONGEST_RESULT = 8000;
/** Decisions that are told, the latest ones. */
const MOST_DECISIONS = 10;

function taskOf({ prose, intent }: IntentView): string {
  // As a JSON string it stays on its line, whatever it holds.
  if (prose !== undefined) return JSON.stringify(clip(prose, LONGEST_TASK));
  return intent === undefined ? 'an intent given as JSON' : JSON.stringify(clip(intent.verb, LONGEST_TASK));
}

/** One line, whatever it was. */
const inLine = (text: string) => text.replaceAll(/\s+/g, ' ').trim();

function decisionOf({ kind, body }: IntentReceipt['envelopes'][number]): string | undefined {
  const { node_id: step, at, by, answer, approved } = body;
  if (kind === 'gate.expired') return `Nobody answered about the step ${step} in time; its approval expired at ${at}.`;
  if (kind !== 'gate.answered') return undefined;
  const said = typeof answer === 'string' ? `, with the words ${JSON.stringify(clip(answer, LONGEST_ANSWER))}` : '';
  return `The step ${step} was ${approved === true ? 'approved' : 'denied'} by ${by} at ${at}${said}.`;
}

/** Who decided what, in the order in which it happened. */
function decisionsOf({ envelopes }: IntentReceipt): string[] {
  const decisions = envelopes.map(decisionOf).filter((decision) => decision !== undefined);
  const left = decisions.length - MOST_DECISIONS;
  return [...(left > 0 ? [`${left} earlier decisions are in the receipt.`] : []), ...decisions.slice(-MOST_DECISIONS)];
}

const reasonOf = ({ error }: IntentState) =>
  error === undefined ? '' : ` Reason: ${clip(inLine(error.message), LONGEST_REASON)}`;

/** What came of it, and what that means for the agent. */
function outcomeOf(view: IntentView): string[] {
  const { status, clarify, intent_id: id } = view;
  if (clarify !== undefined) {
    return [
      `It was not planned, and nothing was carried out: the executor has to know first: ${clip(inLine(clarify), LONGEST_REASON)}`,
      'Ask a person; with their answer it can be handed over as a new task.',
    ];
  }
  switch (status) {
    case 'completed':
      return ['It was completed; the payload has what the tools gave back.', 'It is done: do not hand it over again.'];
    case 'denied':
      return [`It was denied.${reasonOf(view)}`, 'Do not hand it over again unless a person asks for it.'];
    case 'cancelled':
      return [`It was cancelled.${reasonOf(view)}`, 'Do not hand it over again unless a person asks for it.'];
    case 'unknown':
      return [
        `Its outcome is unknown: nobody can say whether a step was carried out.${reasonOf(view)}`,
        `Do not hand it over again: it could be done twice. A person has to look; "reveille intent reconcile ${id}" asks the tools again.`,
      ];
    default:
      return [`It failed.${reasonOf(view)}`, 'Do not hand it over again unless a person asks for it.'];
  }
}

/**
 * The payload of the alarm. What tools said stands here, as data, and not in the message: the agent reads that as its
 * own words.
 */
export function wakePayload({ intent_id, status, result, receipt }: IntentView): RawJson {
  const about = { intent_id, status, receipt };
  const whole = encodeJson({ ...about, ...(result === undefined ? {} : { result }) });
  if (whole.length <= LONGEST_RESULT) return new RawJson(whole);
  return new RawJson(encodeJson({ ...about, result_left_out: `it is ${whole.length} characters long` }));
}

const receiptText = ({ sha256, path }: ReceiptPointer) =>
  `Its receipt has the digest ${sha256}; a person fetches it with GET ${path} from this agent.`;

/** The message of the alarm. */
export function wakeMessage(view: IntentView, receipt: IntentReceipt): string {
  return [
    `A task that was handed over to the executor, and that I did not wait for, is over: intent ${view.intent_id}.`,
    `The task: ${taskOf(view)}`,
    ...decisionsOf(receipt),
    ...outcomeOf(view),
    ...(view.receipt === undefined ? [] : [receiptText(view.receipt)]),
    'This message is from the executor.',
  ].join('\n');
}
