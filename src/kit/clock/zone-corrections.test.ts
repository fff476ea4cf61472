import assert from 'node:assert/strict';
import { test } from 'node:test';
// The database, as a maintained package has it: a newer version of it may need new rows.
import database from 'moment-timezone/data/packed/latest.json' with { type: 'json' };
import { zoneName } from './local-time.ts';
import { offsetReader, zoneOf } from './zone.ts';
import { CORRECTED_TO, correctionsOf } from './zone-corrections.ts';

const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX';
const HOUR_MS = 3_600_000;
const [FROM, UNTIL] = [Date.UTC(2025, 0, 1), Date.UTC(2037, 0, 1)];

/** A number of base 60 with fractions. */
function unpacked(text: string): number {
  const [whole = '', fraction = ''] = text.replace('-', '').split('.');
  const size = [...whole].reduce((sum, digit) => sum * 60 + DIGITS.indexOf(digit), 0);
  const rest = [...fraction].reduceRight((sum, digit) => (sum + DIGITS.indexOf(digit)) / 60, 0);
  return text.startsWith('-') ? -size - rest : size + rest;
}

/** The offsets of a zone from 2025 on, each with the instant from which it is in use. */
function offsetsOf(packed: string): { name: string; spans: { from: number; offsetMs: number }[] } {
  const [name = '', , offsets = '', indices = '', differences = ''] = packed.split('|');
  const offsetsMs = offsets.split(' ').map((offset) => Math.round(-unpacked(offset) * 60) * 1000 + 0);
  let minutes = 0;
  const changes = differences === '' ? [] : differences.split(' ').map((text) => (minutes += unpacked(text)));
  const starts = [Number.NEGATIVE_INFINITY, ...changes.map((change) => Math.round(change * 60) * 1000)];
  const spans = starts.map((from, at) => ({ from, offsetMs: offsetsMs[DIGITS.indexOf(indices[at]!)]! }));
  const first = spans.findLastIndex(({ from }) => from <= FROM);
  return { name, spans: spans.slice(first).filter(({ from }) => from < UNTIL) };
}

test('every zone has the offsets of the newest database, whatever the database of Node', () => {
  assert.equal(database.version, CORRECTED_TO.version, 'a newer database: correct the zones below, then CORRECTED_TO');
  const links = Map.groupBy(
    database.links.map((link) => link.split('|')),
    ([name]) => name,
  );
  const differ: string[] = [];
  let compared = 0;
  for (const { name, spans } of database.zones.map(offsetsOf))
    for (const zone of [name, ...(links.get(name) ?? []).map(([, link]) => link!)]) {
      // The zones that an older Node lacks are refused.
      if (!isKnown(zone)) continue;
      compared++;
      // With every row, also the rows that the database of this Node has.
      for (const read of [offsetReader(zone), offsetReader(zone, '2025b')])
        if (spans.some(({ from, offsetMs }, at) => !isOffset(read, offsetMs, from, spans[at + 1]?.from)))
          differ.push(zone);
    }
  assert.deepEqual(differ, []);
  assert.ok(compared > 550, String(compared));
});

function isKnown(zone: string): boolean {
  try {
    return zoneOf(zone) !== undefined;
  } catch {
    return false;
  }
}

/** Whether a zone has an offset at both ends of an interval, and at its other clock changes. */
function isOffset(read: (instant: number) => number, offsetMs: number, from: number, until = UNTIL): boolean {
  const [first, last] = [Math.max(from, FROM), until - 1];
  if (read(first) !== offsetMs || read(last) !== offsetMs) return false;
  for (let at = first; at < last; at += 61 * 24 * HOUR_MS) if (read(at) !== offsetMs) return false;
  return true;
}

test('zones that changed in 2026 have their new clock, and its name', () => {
  const offset = (zone: string, at: string) => zoneOf(zone).spanAt(Date.parse(at)).offset / HOUR_MS;
  assert.equal(offset('America/Winnipeg', '2026-10-31T12:00Z'), -5);
  assert.equal(offset('america/winnipeg', '2026-12-01T12:00Z'), -5);
  assert.equal(offset('America/Inuvik', '2026-12-01T12:00Z'), -6);
  assert.deepEqual(
    ['2026-12-01T12:00Z', '2027-07-01T12:00Z', '2027-12-01T12:00Z'].map((at) => offset('America/Havana', at)),
    [-4, -4, -5],
  );
  assert.equal(offset('Europe/Berlin', '2026-12-01T12:00Z'), 1);
  if (process.versions.tz! < '2026e')
    assert.equal(zoneName(Date.parse('2026-12-01T12:00Z'), 'America/Winnipeg'), 'UTC-5');
});

test('a Node with the newest database corrects nothing', () => {
  assert.deepEqual(correctionsOf('America/Winnipeg', CORRECTED_TO.version), []);
  assert.deepEqual(correctionsOf('America/Winnipeg', '2027a'), []);
  assert.equal(correctionsOf('America/Winnipeg', undefined).length, 1);
});
