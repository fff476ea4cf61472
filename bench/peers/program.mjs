/**
 * Shared code of the peers' programs: `node <peer>.mjs install|load|work <json>`. Each prints one line of JSON when it
 * is done or, for `work`, when it polls for jobs. `work` continues until its input ends or it receives a stop signal.
 */
import { createDelivery } from '../delivery.ts';
import { jobOf } from '../series.ts';
import { wakeBody } from '../wake-body.ts';

// Standard output carries only the line of JSON. Log lines of a peer go to standard error.
console.log = console.error;
console.info = console.error;

/** Jobs per call of a bulk insert. */
const CHUNK = 5_000;

/**
 * @typedef {{ uri: string, sink?: string, setting?: 'default' | 'best', series?: import('../series.ts').Series[] }} Task
 * @typedef {{ body: Record<string, unknown>, due: Date }} PeerJob
 * @typedef {{
 *   install(task: Task): Promise<void>,
 *   load(task: Task, chunks: Iterable<PeerJob[]>): Promise<void>,
 *   work(task: Task, post: (body: unknown) => Promise<void>): Promise<() => Promise<void>>,
 * }} Peer
 */

/** @param {import('../series.ts').Series[]} series */
function* chunksOf(series) {
  const setAt = new Date().toISOString();
  for (const each of series) {
    for (let from = 0; from < each.count; from += CHUNK) {
      const length = Math.min(CHUNK, each.count - from);
      yield Array.from({ length }, (_, index) => {
        const job = jobOf(each, from + index);
        return { body: wakeBody(job, setAt), due: new Date(job.due) };
      });
    }
  }
}

/** @param {Peer} peer */
export async function runPeer(peer) {
  const [command, json] = process.argv.slice(2);
  /** @type {Task} */
  const task = JSON.parse(json);
  if (command === 'install') await peer.install(task);
  else if (command === 'load') await peer.load(task, chunksOf(task.series));
  else {
    const delivery = createDelivery(task.sink);
    const stop = await peer.work(task, (body) => delivery.post(JSON.stringify(body)));
    const end = async () => {
      await stop();
      process.exit();
    };
    process.stdin.resume().once('end', end);
    process.once('SIGTERM', end);
  }
  process.stdout.write('{"ok":true}\n');
  if (command !== 'work') process.exit();
}
