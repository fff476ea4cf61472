/** pg-boss: a job with `startAfter`, and workers that POST its data. */
import { PgBoss } from 'pg-boss';
import { runPeer } from './program.mjs';

const QUEUE = 'wake';
/** Workers of the best setting. Each polls every 0.5 s, the minimum of pg-boss, so together they poll every 20 ms. */
const WORKERS = 25;
const SHORTEST_POLL_SECONDS = 0.5;
const BATCH = 500;

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function connect(uri, options = {}) {
  const boss = new PgBoss({ connectionString: uri, ...options });
  boss.on('error', (error) => console.error(error));
  return boss;
}

async function workAsDocumentedFirst(boss, post) {
  await boss.work(QUEUE, async ([job]) => post(job.data));
}

/** Many workers poll at different moments, each for a batch. After a full batch a worker requests the next at once. */
async function workAtItsBest(boss, post) {
  const options = { batchSize: BATCH, pollingIntervalSeconds: SHORTEST_POLL_SECONDS, priority: false };
  for (let index = 0; index < WORKERS; index++) {
    const id = await boss.work(QUEUE, options, async (jobs) => {
      if (jobs.length === BATCH) boss.notifyWorker(id);
      await Promise.all(jobs.map((job) => post(job.data)));
    });
    await pause((1000 * SHORTEST_POLL_SECONDS) / WORKERS);
  }
}

await runPeer({
  async install({ uri }) {
    const boss = connect(uri);
    await boss.start();
    await boss.createQueue(QUEUE);
    await boss.stop();
  },

  async load({ uri }, chunks) {
    const boss = connect(uri, { supervise: false, schedule: false });
    await boss.start();
    for (const jobs of chunks)
      await boss.insert(
        QUEUE,
        jobs.map(({ body, due }) => ({ data: body, startAfter: due })),
      );
    await boss.stop();
  },

  async work({ uri, setting }, post) {
    const boss = connect(uri, setting === 'best' ? { max: 25, schedule: false } : {});
    await boss.start();
    await (setting === 'best' ? workAtItsBest(boss, post) : workAsDocumentedFirst(boss, post));
    return () => boss.stop({ graceful: false });
  },
});
