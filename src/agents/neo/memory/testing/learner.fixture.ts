/**
 * A learner as a separate process, for the test that kills it. Prints the durably queued turns, and when all are
 * settled.
 */
import { systemClock } from '../../../../kit/clock/clock.ts';
import { createLogger } from '../../../../kit/log/log.ts';
import { openAICompatibleModel } from '../../../../kit/model/openai-compatible.ts';
import { cortexPath, openCortex } from '../cortex.ts';
import { createLearner, modelQuery } from '../learner.ts';
import { doneTurn } from './cortex-bench.ts';

const [dataDir, baseUrl, first, count] = process.argv.slice(2) as [string, string, string, string];
const cortex = openCortex({ path: cortexPath(dataDir), clock: systemClock });
const model = openAICompatibleModel({ baseUrl, model: 'cheap', apiKey: undefined, prefix: 'NEO', clock: systemClock });
const learner = createLearner({
  cortex,
  queryModel: modelQuery(model),
  turns: { turn: (id) => doneTurn(id) },
  clock: systemClock,
  log: createLogger('learner', 'warn'),
  onLearned: () => {},
});
for (let n = Number(first); n < Number(first) + Number(count); n++) {
  await learner.offer(doneTurn(`t${n}`));
  process.stdout.write(`t${n}\n`);
}
const check = () => {
  if (cortex.lessons.counts().waiting === 0) {
    process.stdout.write('settled\n');
    void learner.close().then(() => cortex.close());
    return;
  }
  setTimeout(check, 5);
};
check();
