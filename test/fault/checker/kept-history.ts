/** The eventful day as a history, run on a real SQLite store with the audit installed. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteStore } from '../../../src/chronos/store/sqlite/store.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { installSqliteAudit } from './audit/install.ts';
import { type DaysAlarms, liveThrough } from './eventful-day.ts';
import { foldClient, foldReceiver } from './fold.ts';
import { type ClientLine, DEFAULT_POLICY, type History, type ReceiverLine } from './history.ts';
import { recordClient, recordReceiver } from './journal.ts';
import { readDatabase } from './read-database.ts';

/** Client, receiver and database use one clock here; the client gets an answer a moment later. */
const TOLERANCE_MS = 5;

export async function keptHistory(): Promise<{ history: History; alarms: DaysAlarms }> {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-checker-'));
  const path = join(folder, 'chronos.db');
  try {
    const store = openSqliteStore({ path, clock: systemClock, log: silentLogger });
    installSqliteAudit(path);
    const calls: ClientLine[] = [];
    const wakes: ReceiverLine[] = [];
    const client = recordClient((line) => calls.push(line));
    const receiver = recordReceiver((line) => wakes.push(line));
    const { alarms, endsAt } = await liveThrough(store, client, receiver);
    await store.close();
    const history: History = {
      client: { clockToleranceMs: TOLERANCE_MS, calls: foldClient(calls) },
      receiver: { clockToleranceMs: TOLERANCE_MS, ...foldReceiver(wakes) },
      database: await readDatabase(path, { readAt: endsAt }),
      policy: DEFAULT_POLICY,
    };
    return { history, alarms };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
