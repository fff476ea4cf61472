/** BullMQ: a job with `delay`, and one worker that POSTs its data. */
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { runPeer } from './program.mjs';

const QUEUE = 'wake';
/** `../systems/peers.ts` explains the choices of `best`. */
const WORKERS = { default: {}, best: { concurrency: 256 } };

/** Workers wait inside the server, so their connections must not time out requests. */
const connect = (uri) => new Redis(uri, { maxRetriesPerRequest: null }).on('error', console.error);

await runPeer({
  async install({ uri }) {
    const connection = connect(uri);
    await connection.flushdb();
    connection.disconnect();
  },

  async load({ uri }, chunks) {
    const connection = connect(uri);
    const queue = new Queue(QUEUE, { connection, defaultJobOptions: { removeOnComplete: true } });
    for (const jobs of chunks) {
      const now = Date.now();
      await queue.addBulk(
        jobs.map(({ body, due }) => ({
          name: QUEUE,
          data: body,
          opts: { delay: due.getTime() - now, timestamp: now },
        })),
      );
    }
    await queue.close();
    connection.disconnect();
  },

  async work({ uri, setting }, post) {
    const connection = connect(uri);
    const worker = new Worker(QUEUE, ({ data }) => post(data), { connection, ...WORKERS[setting] });
    worker.on('error', console.error);
    await worker.waitUntilReady();
    return () => worker.close(true);
  },
});
