import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ENERGY_ZONES, type EnergyZone } from '../../wire/chronometric-vocabulary.ts';
import { gapsIn, layZones, overlaps, zonesOfDay } from './day-rules.ts';
import type { ZoneWindow } from './profile.ts';
import { readWindow, windowContains } from './time-of-day.ts';

const zone = (name: EnergyZone, text: string): ZoneWindow => {
  const window = readWindow(text);
  assert.ok(!('problem' in window));
  return { zone: name, ...window };
};
const zoneAt = (zones: readonly ZoneWindow[], minute: number) =>
  zones.find((window) => windowContains(window, minute))?.zone;

const windows = fc.array(
  fc.record({
    zone: fc.constantFrom(...ENERGY_ZONES.filter((name) => name !== 'unknown')),
    from: fc.integer({ min: 0, max: 1439 }),
    to: fc.integer({ min: 0, max: 1439 }),
  }),
  { maxLength: 5 },
);

describe('zones', () => {
  test('a declared zone has its declared hours, and other zones have their default hours', () => {
    const laid = layZones([zone('morning_peak', '06:00-11:00'), zone('midday', '11:00-15:00')]);
    assert.deepEqual(
      [300, 360, 659, 660, 839, 899, 900, 1260].map((minute) => zoneAt(laid, minute)),
      [
        ...['night_owl_caution', 'morning_peak', 'morning_peak', 'midday', 'midday', 'midday'],
        ...['afternoon_dip', 'night_owl_caution'],
      ],
    );
    assert.deepEqual(gapsIn(laid), ['05:00-06:00']);
  });

  test('hours outside all zones are unknown when the night has declared hours', () => {
    const laid = layZones([zone('night_owl_caution', '22:00-05:00')]);
    assert.deepEqual(
      [1319, 1320, 0, 299].map((minute) => zoneAt(laid, minute)),
      [...[undefined, 'night_owl_caution', 'night_owl_caution', 'night_owl_caution']],
    );
    assert.deepEqual(gapsIn(laid), [], 'the evening is not an hour of the day');
  });

  test('a zone of an override replaces the zone of that name in the base', () => {
    const base = [zone('midday', '12:00-13:00'), zone('morning_peak', '08:00-12:00')];
    const laid = layZones([zone('midday', '11:00-12:00')], base);
    assert.deepEqual(
      [480, 660, 720].map((minute) => zoneAt(laid, minute)),
      [...['morning_peak', 'midday', 'night_owl_caution']],
    );
  });

  test('overlapping zones are found with their shared hours, also past midnight', () => {
    const found = overlaps([
      zone('evening_quiet', '20:00-02:00'),
      zone('morning_peak', '01:00-10:00'),
      zone('evening_quiet', '01:30-01:45'),
      zone('midday', '10:00-20:00'),
    ]);
    assert.deepEqual(found, [
      { later: 1, earlier: 0, shared: '01:00-02:00' },
      { later: 2, earlier: 1, shared: '01:30-01:45' },
    ]);
  });

  test('overlaps agree with a check of every minute of the day', () => {
    fc.assert(
      fc.property(windows, (zones) => {
        const pairs = new Set(overlaps(zones).map(({ later, earlier }) => `${later}/${earlier}`));
        for (const [later, one] of zones.entries())
          for (const [earlier, other] of zones.slice(0, later).entries()) {
            const shares = Array.from({ length: 1440 }).some(
              (_, minute) => windowContains(one, minute) && windowContains(other, minute),
            );
            assert.equal(pairs.has(`${later}/${earlier}`), shares && one.zone !== other.zone);
          }
      }),
      { numRuns: 60 },
    );
  });

  test('the intervals of a day cover every minute', () => {
    fc.assert(
      fc.property(windows, (declared) => {
        const laid = layZones(declared);
        const day = zonesOfDay(laid);
        assert.deepEqual([day[0]?.from, day.at(-1)?.to], [0, 1440]);
        for (const [at, { from, to, zone: name }] of day.entries()) {
          assert.equal(from, at === 0 ? 0 : day[at - 1]!.to);
          for (let minute = from; minute < to; minute++) assert.equal(zoneAt(laid, minute), name);
        }
        for (const one of declared) assert.ok(declared.some((other) => other.zone === zoneAt(laid, one.from)));
      }),
      { numRuns: 60 },
    );
  });
});
