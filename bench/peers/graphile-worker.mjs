/** graphile-worker: a job with `runAt`, and a task that POSTs its payload. */
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import { runPeer } from './program.mjs';

const TASK = 'wake';
const quiet = new Logger(() => () => {});

/** Both settings follow the documentation; `../systems/peers.ts` explains the choices of `best`. */
const PRESETS = {
  default: {},
  best: {
    concurrentJobs: 256,
    maxPoolSize: 25,
    pollInterval: 5,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    logger: quiet,
  },
};

await runPeer({
  async install({ uri }) {
    const utils = await makeWorkerUtils({ connectionString: uri, logger: quiet });
    await utils.migrate();
    await utils.release();
  },

  async load({ uri }, chunks) {
    const utils = await makeWorkerUtils({ connectionString: uri, logger: quiet });
    for (const jobs of chunks) {
      await utils.addJobs(jobs.map(({ body, due }) => ({ identifier: TASK, payload: body, runAt: due })));
    }
    await utils.release();
  },

  async work({ uri, setting }, post) {
    const runner = await run({
      preset: { worker: { connectionString: uri, ...PRESETS[setting] } },
      noHandleSignals: true,
      taskList: { [TASK]: post },
    });
    let isStopping = false;
    // When it gives up its pool of workers, for example without a database, its own command ends. A supervisor restarts
    // it.
    const ended = () => {
      if (!isStopping) process.exit(1);
    };
    runner.promise.then(ended, ended);
    return () => {
      isStopping = true;
      return runner.stop();
    };
  },
});
