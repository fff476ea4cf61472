import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PromptContext } from '../../wire/chronometric-view.ts';
import { HOOK_FORMATS, inForm, promptLine } from './time-text.ts';

type PromptData = Omit<PromptContext, 'line'>;

const MOMENT: PromptData = {
  now: '2026-06-15T14:32:10+02:00',
  day_of_week: 'Monday',
  timezone: 'Europe/Berlin',
  problems: [],
};
const SESSION = {
  started_at: '2026-06-15T13:20:00+02:00',
  last_seen_at: '2026-06-15T14:32:00+02:00',
  active_duration: 'PT1H11M30S',
  forgotten: false,
};
const NOW = 'Time: Monday 2026-06-15 14:32 +02:00 (Europe/Berlin).';

test('the line contains the known data, and nothing else', () => {
  assert.equal(promptLine(MOMENT), NOW);
  assert.equal(
    promptLine({ ...MOMENT, since_last_prompt: null, session: null }),
    `${NOW} First prompt seen here. No session open.`,
  );
});

test('gaps are shown with suitable precision', () => {
  const gap = (since: string) => promptLine({ ...MOMENT, since_last_prompt: since }).slice(NOW.length + 1);
  assert.deepEqual(['PT0S', 'PT1S', 'PT59S', 'PT4M10S', 'PT3H5M', 'PT52H'].map(gap), [
    ...['Last prompt just now.', 'Last prompt 1 s ago.', 'Last prompt 59 s ago.'],
    ...['Last prompt 4 min ago.', 'Last prompt 3 h 5 min ago.', 'Last prompt 2 d 4 h ago.'],
  ]);
});

test('a session is shown with its break, due or upcoming', () => {
  const breakText = (breakStatus: PromptContext['break']) =>
    promptLine({ ...MOMENT, session: SESSION, ...(breakStatus && { break: breakStatus }) }).slice(NOW.length + 1);
  const open = 'Session open since 13:20, 1 h 11 min active.';
  const known = { elapsed: 'PT1H11M', threshold_minutes: 60 };
  assert.equal(breakText({ ...known, due: false, due_in: 'PT18M' }), `${open} Break due in 18 min of active time.`);
  assert.equal(
    breakText({ ...known, due: true, level: 'nudge' }),
    `${open} Break due now (nudge): 1 h 11 min active without one.`,
  );
  assert.equal(
    breakText({ ...known, due: true, level: 'none' }),
    `${open} Break due now: 1 h 11 min active without one.`,
    'below the ladder a threshold asks, without a level',
  );
  assert.equal(
    breakText({ ...known, due: true, level: 'hard', protected_window_label: 'dinner\u001b[2J' }),
    `${open} Break due now (hard): kept free for dinner\\u001b[2J.`,
  );
});

test('an intent is shown on one line, harmless and limited in length', () => {
  const line = promptLine({ ...MOMENT, session: { ...SESSION, intent: `fix\n"it"\u202e ${'x'.repeat(600)}` } });
  assert.match(line, /Session open since 13:20 for "fix "it"\\u202e x+…", 1 h 11 min active\.$/);
  assert.ok(line.length < 300);
});

test('a forgotten session is shown with its dates', () => {
  const session = {
    ...SESSION,
    started_at: '2026-06-14T16:00:00+02:00',
    last_seen_at: '2026-06-14T17:00:00+02:00',
    forgotten: true,
  };
  assert.equal(
    promptLine({ ...MOMENT, session }).slice(NOW.length + 1),
    'A session is still open since 2026-06-14 16:00, last seen 2026-06-14 17:00.',
  );
});

test('every program gets the line in its format', () => {
  const line = 'It is "late".';
  const event = (hookEventName: string) => ({ hookSpecificOutput: { hookEventName, additionalContext: line } });
  const forms = Object.fromEntries(HOOK_FORMATS.map((format) => [format, inForm(format, line)]));
  const { text, ...json } = forms;
  assert.equal(text, line);
  assert.deepEqual(Object.fromEntries(Object.entries(json).map(([format, form]) => [format, JSON.parse(form!)])), {
    'claude-code': event('UserPromptSubmit'),
    codex: event('UserPromptSubmit'),
    gemini: event('BeforeAgent'),
    cursor: { additional_context: line },
  });
  assert.equal(inForm('toString', line), undefined);
});
