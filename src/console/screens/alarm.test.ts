/** The page of an alarm: who wrote each of its texts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AlarmView } from '../../wire/alarm.ts';
import { RawJson } from '../../wire/json.ts';
import type { RequestContext } from '../request-context.ts';
import { detailOf } from './alarm.ts';

async function pageOf(more: Partial<AlarmView>): Promise<string> {
  const alarm = {
    ...{ id: '01890000-0000-7000-8000-000000000000', kind: 'once', label: 'report', wake_message: 'x' },
    ...{ payload: new RawJson('{"a":1}'), status: 'active', failure_count: 0, fire_count: 0, in_flight: false },
    ...{ created_at: '2026-06-16T08:00:00.000Z', max_failures: 3, ...more },
  } as unknown as AlarmView;
  const alarms = { getAlarm: async () => alarm, listFires: async () => ({ fires: [] }) };
  const context = {
    ...{ backend: { alarms: { there: alarms } }, here: { zone: 'UTC', now: 0 }, session: { csrf: 'c' } },
    ...{ query: new URLSearchParams(), origin: 'http://127.0.0.1' },
  } as unknown as RequestContext;
  return String(await detailOf(context, alarm.id))
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ');
}

test('the page names the author of each text that another than that of the message wrote', async () => {
  const person = { kind: 'person', name: 'Ada' } as const;
  const client = { kind: 'client', client_id: 'c1', name: 'Chat' } as const;
  const page = await pageOf({ set_by: person, text_by: { label: client, payload: { kind: 'agent' } } });
  assert.match(page, /Message by Ada Label by Chat \(client c1\) Payload by the agent/);
  assert.doesNotMatch(await pageOf({ set_by: person }), /(?:Label|Payload) by/);
});
