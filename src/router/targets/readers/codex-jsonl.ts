/** `codex exec --json`: one event on a line. The turn is over when one of them says so; the exit code adds nothing. */
import { isObject, jsonLines, type Reader, type Reading, textAt } from './reading.ts';

/** The item of an event about something that the agent did; what only tells of an error is none. */
function itemOf(event: Record<string, unknown>): Record<string, unknown> | undefined {
  if (typeof event.type !== 'string' || !event.type.startsWith('item.') || !isObject(event.item)) return undefined;
  return kindOf(event.item) === 'error' ? undefined : event.item;
}

const kindOf = (item: Record<string, unknown>) => item.type ?? item.item_type;

const isMessage = (item: Record<string, unknown>) => /^(agent|assistant)_message$/.test(String(kindOf(item)));

const words = (value: unknown): string | undefined =>
  isObject(value) ? textAt(value, 'message') : typeof value === 'string' ? value : undefined;

function next(reading: Reading, event: Record<string, unknown>): Reading {
  switch (event.type) {
    case 'thread.started':
      return { ...reading, session: textAt(event, 'thread_id') ?? reading.session };
    case 'turn.completed':
      return { ...reading, verdict: 'done', began: true };
    case 'turn.failed':
      return { ...reading, verdict: 'failed', error: words(event.error) ?? reading.complaint ?? 'no reason' };
    case 'error':
      return { ...reading, complaint: words(event) ?? reading.complaint };
  }
  const item = itemOf(event);
  if (!item) return reading;
  return { ...reading, began: true, reply: (isMessage(item) && textAt(item, 'text')) || reading.reply };
}

export const readCodexJsonl: Reader = ({ stdout }) => {
  const reading = jsonLines(stdout.text).reduce<Reading>(next, { verdict: 'none', began: false });
  const { complaint } = reading;
  // An error that a turn recovers from is followed by the turn's end; before its beginning nothing follows.
  if (reading.verdict === 'none' && !reading.began && complaint !== undefined)
    return { ...reading, verdict: 'failed', error: `codex reports: ${complaint}` };
  return reading.verdict === 'failed' ? { ...reading, error: `codex reports: ${reading.error}` } : reading;
};
