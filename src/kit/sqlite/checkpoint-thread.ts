/** The thread of `checkpoints.ts`: its own connection moves pages while another one writes. */
import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { thrownText } from '../../wire/errors.ts';
import type { CheckpointReport } from './checkpoints.ts';

const db = new DatabaseSync(workerData as string, { timeout: 0 });
db.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON');
// Passive: it neither waits for other connections nor blocks them.
const checkpoint = db.prepare('PRAGMA wal_checkpoint(PASSIVE)');

function report(): CheckpointReport {
  try {
    return { moved: (checkpoint.get() as { checkpointed: number }).checkpointed };
  } catch (thrown) {
    return { error: thrownText(thrown) };
  }
}

parentPort!.on('message', (message: 'checkpoint' | 'close') => {
  if (message === 'checkpoint') {
    parentPort!.postMessage(report());
    return;
  }
  db.close();
  parentPort!.close();
});
