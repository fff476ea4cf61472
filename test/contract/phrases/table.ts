/** The table of phrases, and the zones in which it holds. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { offsetAt } from '../../../src/kit/clock/zone.ts';

/** Five zones: two with daylight saving time, one with half an hour of it in the other season, two without. */
export const ZONES = ['Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Australia/Lord_Howe', 'UTC'];

/** The instant of an unambiguous wall time of a zone. */
export function instantOf(wall: string, zone: string): number {
  const utc = Date.parse(`${wall.replace(' ', 'T')}Z`);
  return [-1, 0, 1]
    .map((day) => utc - offsetAt(zone, utc + day * 86_400_000))
    .find((at) => at + offsetAt(zone, at) === utc)!;
}

type Row = { readonly now: string; readonly phrase: string; readonly wanted: string; readonly echo?: string };

/** The table beside this file: phrases by the time of their input, with their meaning. */
function readTable(): Row[] {
  const rows: Row[] = [];
  let now = '';
  for (const line of readFileSync(join(import.meta.dirname, 'phrases.txt'), 'utf8').split('\n')) {
    if (line.startsWith('## ')) now = line.slice(3);
    const [, phrase, wanted, echo] = /^(?!#)(.*?)\s+= (.*?)(?: → (.*))?$/.exec(line) ?? [];
    if (phrase !== undefined) rows.push({ now, phrase, wanted: wanted!, ...(echo !== undefined && { echo }) });
  }
  return rows;
}

export const rows = readTable();
