/** A page of alarms ends at its bytes, and its cursor continues with the next alarm. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHttpBench } from './http-bench.ts';

const ALARMS = 70;
const MESSAGE = 'x'.repeat(64 * 1024);
/** One message of MCP has at most 9 MiB, and has each alarm twice. */
const PAGE_BYTES = 2.2 * 1024 * 1024;

for (const query of ['', '&sort=next', '&text=alarm%20'])
  test(`pages of large alarms are small, and miss and repeat none (limit=500${query})`, async (t) => {
    const bench = await createHttpBench(t);
    const agent = await bench.agent('ada');
    const made = new Set<string>();
    for (let n = 0; n < ALARMS; n++) {
      const alarm = { delay_seconds: 60 + (n % 7), label: `alarm ${n}`, wake_message: MESSAGE };
      made.add(await agent.set(alarm));
    }
    const seen: string[] = [];
    let cursor = '';
    do {
      const { data, text, status } = await agent.call('GET', `/v1/alarms?limit=500${query}${cursor}`);
      assert.equal(status, 200, text);
      assert.ok(text.length < PAGE_BYTES, `a page of ${text.length} bytes`);
      assert.equal(data.count, data.alarms.length);
      seen.push(...data.alarms.map(({ id }) => id));
      cursor = data.next_cursor === undefined ? '' : `&cursor=${data.next_cursor}`;
    } while (cursor !== '');
    assert.equal(seen.length, ALARMS);
    assert.deepEqual(new Set(seen), made);
  });
