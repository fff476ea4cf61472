/**
 * Rate of client and sink without a scheduler: 256 POSTs always in flight, over the connections of Reveille's waker. It
 * is its own process, like every system. Prints the duration in milliseconds.
 */
import { CONNECTIONS, createDelivery } from './delivery.ts';
import { jobOf } from './series.ts';
import { wakeBody } from './wake-body.ts';

const [url, count] = process.argv.slice(2);
const delivery = createDelivery(url!);
const setAt = new Date().toISOString();

async function postAll(series: number, total: number): Promise<number> {
  const jobs = { number: series, count: total, firstDue: Date.now(), spanMs: 1 };
  let next = 0;
  const postOneAfterTheOther = async () => {
    while (next < total) await delivery.post(JSON.stringify(wakeBody(jobOf(jobs, next++), setAt)));
  };
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: CONNECTIONS }, postOneAfterTheOther));
  return performance.now() - startedAt;
}

await postAll(0, 5_000);
const milliseconds = await postAll(1, Number(count));
process.stdout.write(`${JSON.stringify({ milliseconds })}\n`);
await delivery.close();
process.exit();
