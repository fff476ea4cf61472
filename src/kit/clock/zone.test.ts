import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Temporal } from 'temporal-polyfill';
import { ReveilleError } from '../../wire/errors.ts';
import { zoneOf } from './zone.ts';

const HOUR_MS = 3_600_000;

function at(text: string): number {
  return Date.parse(text);
}

test('the offset of a zone changes at the instant of a clock change', () => {
  const berlin = zoneOf('Europe/Berlin');
  const change = at('2026-03-29T01:00:00Z');
  assert.equal(berlin.spanAt(change - 1).offset, HOUR_MS);
  assert.equal(berlin.spanAt(change - 1).end, change);
  assert.equal(berlin.spanAt(change).offset, 2 * HOUR_MS);
  assert.equal(berlin.spanAt(change).start, change);
});

test('unusual offsets are known', () => {
  assert.equal(zoneOf('Asia/Kathmandu').spanAt(at('2026-01-01T00:00:00Z')).offset, 5.75 * HOUR_MS);
  assert.equal(zoneOf('Australia/Lord_Howe').spanAt(at('2026-01-01T00:00:00Z')).offset, 11 * HOUR_MS);
  assert.equal(zoneOf('Australia/Lord_Howe').spanAt(at('2026-07-01T00:00:00Z')).offset, 10.5 * HOUR_MS);
  assert.equal(zoneOf('Africa/Monrovia').spanAt(at('1971-01-01T00:00:00Z')).offset, -(44 * 60 + 30) * 1_000);
  assert.equal(zoneOf('UTC').spanAt(at('2026-01-01T00:00:00Z')).offset, 0);
  const apia = zoneOf('Pacific/Apia');
  const change = at('2011-12-30T10:00:00Z');
  assert.deepEqual([apia.spanAt(change - 1).offset, apia.spanAt(change).offset], [-10 * HOUR_MS, 14 * HOUR_MS]);
});

test('spans are contiguous and agree with Temporal', () => {
  const zones = fc.constantFrom(
    'Europe/Dublin',
    'Africa/Casablanca',
    'Asia/Gaza',
    'America/Santiago',
    'Pacific/Chatham',
  );
  const instants = fc.integer({ min: at('1970-01-01T00:00:00Z'), max: at('2099-01-01T00:00:00Z') });
  fc.assert(
    fc.property(zones, instants, (timezone, instant) => {
      const zone = zoneOf(timezone);
      const span = zone.spanAt(instant);
      assert.ok(span.start <= instant && instant < span.end);
      assert.equal(zone.spanAt(span.end).start, span.end);
      assert.equal(zone.spanAt(span.start - 1).end, span.start);
      const zoned = (epochMs: number) => Temporal.Instant.fromEpochMilliseconds(epochMs).toZonedDateTimeISO(timezone);
      for (const probe of [span.start, instant, span.end - 1]) {
        assert.equal(zoned(probe).offsetNanoseconds, span.offset * 1e6);
      }
    }),
    { numRuns: 150 },
  );
});

test('every zone that the platform lists is accepted, case-insensitively', () => {
  for (const timezone of Intl.supportedValuesOf('timeZone')) zoneOf(timezone);
  for (const alias of ['Europe/Kyiv', 'Asia/Kolkata', 'US/Pacific', 'Etc/GMT+5', 'EST5EDT', 'CET', 'GB', 'Zulu'])
    zoneOf(alias);
  assert.equal(zoneOf('europe/BERLIN'), zoneOf('Europe/Berlin'));
});

const REFUSED: [timezone: string, message: RegExp][] = [
  ['Mars/Base', /timezone "Mars\/Base" is not an IANA zone; use one such as "Europe\/Berlin", or "UTC"/],
  ['Europe/Berln', /did you mean "Europe\/Berlin"\?/],
  ['Berlin', /did you mean "Europe\/Berlin"\?/],
  ['new york', /did you mean "America\/New_York"\?/],
  [' Europe/Berlin', /did you mean "Europe\/Berlin"\?/],
  ['', /timezone "" is not an IANA zone/],
  ['+01:00', /timezone "\+01:00" is a fixed offset, not an IANA zone/],
  ['UTC+2', /is a fixed offset/],
  ['BST', /timezone "BST" is not an IANA zone/], // Intl reads it as Dhaka
  ['pst', /is not an IANA zone/],
  ['SystemV/PST8', /is not an IANA zone/],
  ['Etc/Unknown', /is not an IANA zone/],
  ['Asia/\u212Aathmandu', /did you mean "Asia\/Katmandu"\?/], // the Kelvin sign, which lower-cases to k
  ['Europe/Berlin\0', /is not an IANA zone/],
  ['../../etc/passwd', /is not an IANA zone/],
  ['Z'.repeat(10_000), /\(10002 characters\) is not an IANA zone/],
];

for (const [timezone, message] of REFUSED) {
  test(`the zone ${JSON.stringify(timezone).slice(0, 40)} is refused with a remedy`, () => {
    zoneOf('Asia/Kathmandu');
    assert.throws(
      () => zoneOf(timezone),
      (error) => {
        assert.ok(error instanceof ReveilleError);
        assert.equal(error.code, 'invalid_request');
        assert.match(error.message, message);
        return true;
      },
    );
  });
}
