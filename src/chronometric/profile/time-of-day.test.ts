import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatTimeOfDay, formatWindow, meantTime, readTimeOfDay, readWindow } from './time-of-day.ts';

const minutes = fc.integer({ min: 0, max: 1439 });

test('a time is read only in its exact form', () => {
  fc.assert(fc.property(minutes, (minute) => readTimeOfDay(formatTimeOfDay(minute)) === minute));
  for (const text of ['', '9:30', '24:00', '18:60', '18.30', '1830', ' 18:30', '18:30:00', '-1:00', '१८:३०'])
    assert.equal(readTimeOfDay(text), undefined, text);
});

test('a window is read with its two ends', () => {
  fc.assert(
    fc.property(minutes, minutes, (from, to) => {
      fc.pre(from !== to);
      assert.deepEqual(readWindow(formatWindow({ from, to })), { from, to });
    }),
  );
  assert.deepEqual(readWindow('00:00-24:00'), { from: 0, to: 0 });
  assert.deepEqual(readWindow('22:00 - 24:00'), { from: 1320, to: 0 });
});

test('an invalid window has a problem with a remedy', () => {
  const remedy = (text: string) => {
    const read = readWindow(text);
    return 'problem' in read ? read.problem : undefined;
  };
  assert.equal(remedy('9:00-1730'), 'must be a window; write "09:00-17:30"');
  assert.equal(remedy('9am-5pm'), 'must be a window; write "09:00-17:00"');
  assert.equal(remedy('24:00-06:00'), 'must be a window; write "00:00-06:00"');
  assert.match(remedy('08:00-08:00')!, /^must not end when it begins; the whole day is "00:00-24:00"/);
  for (const text of ['', '-', '08:00', '08:00-', '8-9-10', '25:00-26:00'])
    assert.equal(remedy(text), 'must be a window such as "22:00-06:30"', text);
});

test('the meant time is guessed only for unambiguous text', () => {
  const meant = { '0500': '05:00', '500': '05:00', '9:30': '09:30', '18.30': '18:30', '6 pm': '18:00' };
  const alsoMeant = { '12am': '00:00', '12:15 p.m.': '12:15', '24:00': '00:00', '18:30:00': '18:30' };
  for (const [text, time] of Object.entries({ ...meant, ...alsoMeant })) assert.equal(meantTime(text), time, text);
  for (const text of ['6', '2560', '13pm', 'noon', '']) assert.equal(meantTime(text), undefined, text);
  fc.assert(
    fc.property(fc.string(), (text) => {
      const time = meantTime(text);
      assert.ok(time === undefined || readTimeOfDay(time) !== undefined);
    }),
  );
});
