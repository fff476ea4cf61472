/** One POST to the sink, sent like a wake of Reveille. The raw rate and the peers use this code too. */
import { Pool } from 'undici';
import { wakeAnswer } from '../src/chronos/dispatch/http-waker.ts';

/** The default is chronosd's limit of parallel wakes. */
export const CONNECTIONS = 256;

export type Delivery = {
  /** Rejects unless the answer is 2xx. */
  post(body: string): Promise<void>;
  close(): Promise<void>;
};

export function createDelivery(url: string): Delivery {
  const { origin, pathname } = new URL(url);
  const pool = new Pool(origin, {
    connections: CONNECTIONS,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: 4_000,
  });
  const headers = ['content-type', 'application/json'];
  return {
    post: (body) =>
      new Promise((resolve, reject) => {
        const exchange = wakeAnswer(
          url,
          (result) => {
            if (result.outcome === 'delivered') resolve();
            else reject(new Error('error' in result ? result.error : `the wake was ${result.outcome}`));
          },
          () => {},
        );
        pool.dispatch({ method: 'POST', path: pathname, headers, body }, exchange);
      }),
    close: () => pool.destroy(),
  };
}
