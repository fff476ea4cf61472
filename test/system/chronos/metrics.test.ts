import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseChronosConfig } from '../../../src/chronos/config.ts';
import { startChronos } from '../../../src/chronos/daemon.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';

test('/metrics is valid Prometheus text, and contains the metrics of the alert rules', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-metrics-'));
  const config = parseChronosConfig({ CHRONOS_DATA_DIR: folder, CHRONOS_PORT: '0', CHRONOS_DEV: '1' });
  const chronos = await startChronos({ config, clock: systemClock, log: silentLogger });
  try {
    const answer = await fetch(`${chronos.url}/metrics`);
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
    const text = await answer.text();
    for (const name of [
      'chronos_fire_lateness_seconds',
      'chronos_delivery_duration_seconds',
      'chronos_claim_duration_seconds',
      'chronos_attempts_total',
      'chronos_retries_total',
      'chronos_store_errors_total',
      'chronos_turns_total',
      'chronos_held_total 0',
      'chronos_in_flight 0',
      'chronos_overdue_seconds 0',
      'chronos_due 0',
      'chronos_refused_total',
      'chronos_owners 0',
      'chronos_stored_alarms 0',
      'chronos_stored_bytes 0',
    ])
      assert.ok(text.includes(name), name);
  } finally {
    await chronos.close();
    rmSync(folder, { recursive: true });
  }
});
