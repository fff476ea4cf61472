/** `protected_windows`: hours in which a break is suggested firmly. Pure. */
import { DAYS, type Day } from '../../wire/chronometric-words.ts';
import { nearestOf } from '../../wire/edit-distance.ts';
import { type Field, warnOfUnknown } from './field.ts';
import type { ProtectedWindow } from './profile.ts';
import { readWindowEnd, windowOf } from './time-of-day.ts';

const FIELDS = ['label', 'from', 'to', 'days'] as const;
const MOST = 50;
const LONGEST_LABEL = 200;

/** `friday` or `fri`, in any case. */
export function readDay(name: string): Day | undefined {
  const small = name.toLowerCase();
  return DAYS.find((day) => day === small || day.slice(0, 3) === small);
}

function readDays(field: Field): readonly Day[] | undefined {
  const items = field.items('a list of days such as [monday, friday]', 7);
  const days = items?.map((item) => {
    const name = item.text('a day such as monday');
    const day = name === undefined ? undefined : readDay(name);
    if (name === undefined || day !== undefined) return day;
    return item.wrong(`must be a day such as ${nearestOf(name.toLowerCase(), DAYS) ?? 'monday'} (got ${item.shown})`);
  });
  // Without one of its days, the window would apply on wrong days.
  return days?.every((day) => day !== undefined) ? [...new Set(days)] : undefined;
}

function readLabel(field: Field): string | undefined {
  const label = field.text('a text that names the window, such as "dinner"');
  if (label === undefined || [...label].length <= LONGEST_LABEL) return label;
  return field.wrong(`must have at most ${LONGEST_LABEL} characters (it has ${[...label].length})`);
}

function readWindow(entry: Field): ProtectedWindow | undefined {
  const members = entry.members('a window such as {label: dinner, from: "18:00", to: "19:30"}');
  if (members === undefined) return undefined;
  warnOfUnknown(members, FIELDS);
  const missing = FIELDS.filter((name) => name !== 'days' && !members.has(name));
  for (const name of missing) entry.wrong(`has no ${name}; it needs label, from and to`);
  const [labelled, begins, ends, on] = FIELDS.map((name) => members.get(name));
  const [label, from, to] = [labelled && readLabel(labelled), begins?.time(), ends?.time(readWindowEnd)];
  const days = on && readDays(on);
  if (label === undefined || from === undefined || to === undefined || (on && days === undefined)) return undefined;
  const window = windowOf(from, to);
  if (!window) return ends!.wrong('must differ from its from; the whole day is from "00:00" to "24:00"');
  return { label, ...window, ...(days && { days }), line: entry.line };
}

/** @returns the valid ones; each of the others is a problem */
export function readProtectedWindows(field: Field): readonly ProtectedWindow[] | undefined {
  if (Array.isArray(field.value) && field.value.length === 0) return [];
  return field
    .items('a list of windows, each with label, from and to', MOST)
    ?.map(readWindow)
    .filter((window) => window !== undefined);
}
