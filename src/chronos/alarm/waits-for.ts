/** What an alarm with events waits for, in words: `a webhook, or nothing for 1 h`. Pure. */
import { formatDuration } from '../../kit/clock/duration.ts';
import type { ChainOutcome, EventSource } from '../../wire/conditions.ts';
import { durationMs } from '../../wire/iso-duration.ts';
import type { Alarm } from './alarm.ts';
import { followedBy } from './chain.ts';
import { eventRulesOf } from './events.ts';
import { optionsOf } from './options.ts';

const ENDS: Readonly<Record<ChainOutcome, (id: string) => string>> = {
  finished: (id) => `a finished turn of alarm ${id}`,
  failed: (id) => `a failed fire or turn of alarm ${id}`,
  missed: (id) => `a missed fire of alarm ${id}`,
  any: (id) => `the end of any fire of alarm ${id}`,
};

function sourceText(event: Exclude<EventSource, { source: 'alarm' }>): string {
  switch (event.source) {
    case 'webhook':
      return 'a webhook';
    case 'file':
      return `a change of ${event.path}`;
    case 'process':
      return `the end of process ${event.pid}`;
    case 'mcp':
      return `the event ${event.name} of the server ${event.server}`;
  }
}

const text = (duration: string) => formatDuration(durationMs(duration));

/** `undefined` for an alarm without events. */
export function waitsFor(alarm: Pick<Alarm, 'kind' | 'options'>): string | undefined {
  if (alarm.kind !== 'event') return undefined;
  const { event, expect } = optionsOf(alarm);
  const followed = followedBy(alarm);
  const source = followed
    ? ENDS[followed.on](followed.id)
    : event && event.source !== 'alarm'
      ? sourceText(event)
      : 'a call of its address';
  const { pointer, equals } = event?.filter ?? {};
  const filter =
    pointer === undefined
      ? ''
      : equals === undefined
        ? ` with ${pointer}`
        : ` with ${pointer} = ${JSON.stringify(equals)}`;
  const what = `${source}${filter}`;
  if (expect) {
    const grace = expect.grace === undefined ? '' : ` and ${text(expect.grace)} more`;
    return `${text(expect.every)}${grace} without ${what}`;
  }
  return event?.deadline === undefined ? what : `${what}, or nothing for ${text(event.deadline)}`;
}

/** How events are collected, and how often the alarm fires. */
export function notesOfEvents(alarm: Pick<Alarm, 'kind' | 'options'>): string[] {
  const { event, after } = optionsOf(alarm);
  const { batch, isOnce } = eventRulesOf(alarm);
  const delay = after?.delay_seconds;
  const notes = [
    isOnce ? 'it ends with its first wake' : undefined,
    after ? 'it ends when the alarm that it follows has ended' : undefined,
    delay ? `it fires ${formatDuration(delay * 1000)} after that` : undefined,
    event?.quiet_for === undefined ? undefined : `a wake waits until nothing has come for ${text(event.quiet_for)}`,
    event?.at_most_every === undefined ? undefined : `two wakes are at least ${text(event.at_most_every)} apart`,
    batch > 1 ? `one wake carries up to ${batch} events` : undefined,
  ];
  return notes.filter((note) => note !== undefined);
}
