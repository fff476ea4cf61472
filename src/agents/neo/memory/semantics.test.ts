import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../../../test/support/eventually.ts';
import { silentLogger } from '../../../kit/log/log.ts';
import { embeddingEndpoint } from './embedding-endpoint.ts';
import { recall } from './recall.ts';
import { createSemantics } from './semantics.ts';
import { CLOCK_START, cortexBench, from, note } from './testing/cortex-bench.ts';
import {
  answerVectors,
  type EmbeddingScript,
  embedding,
  embeddingServer,
  refusingWith,
  vectorOf,
} from './testing/embedding-endpoint.ts';

const TEXTS = ['The user has a puppy named Rex', 'The user sees a physician on Mondays', 'The user collects stamps'];
const SPACE = 'e/64';

async function workbench(t: TestContext, script?: EmbeddingScript) {
  const bench = cortexBench(t);
  const { cortex, clock } = bench;
  const server = await embeddingServer(t, script);
  const make = () => {
    const embed = embeddingEndpoint({ baseUrl: server.baseUrl, model: 'e', apiKey: 'a-secret-key' }, clock);
    const semantics = createSemantics({ cortex, embed, model: 'e', clock, log: silentLogger });
    t.after(() => semantics.close());
    return semantics;
  };
  await cortex.remember(
    TEXTS.map((text) => note(text)),
    from('t1'),
  );
  const semantics = make();
  const ask = async (query: string, by = semantics) =>
    (await recall({ query, now: CLOCK_START }, { cortex, semantics: by })).map(({ text }) => text);
  const missing = (space = SPACE) => cortex.vectors.missing(0, 1000, space, 1000).length;
  return { ...bench, server, semantics, make, ask, missing };
}

/** Runs the event loop until the condition holds; the event comes from the network, not from a clock. */
test('a memory without common words is found by its meaning, and is first where both searches agree', async (t) => {
  const { semantics, ask, missing, server } = await workbench(t);
  assert.deepEqual(await ask('canine'), [], 'no vectors have been made yet');
  semantics.wake();
  await eventually('no vector is missing', () => missing() === 0);
  assert.deepEqual(await ask('canine'), [TEXTS[0]]);
  assert.equal((await ask('physician, medical'))[0], TEXTS[1]);
  assert.equal(server.requests[0]!.headers.authorization, 'Bearer a-secret-key');
});

test('vectors survive the process; only new memories are embedded', async (t) => {
  const { cortex, semantics, make, ask, missing, server } = await workbench(t);
  semantics.wake();
  await eventually('no vector is missing', () => missing() === 0);
  await semantics.close();
  await cortex.remember([note('The user drives an old automobile')], from('t2'));
  const again = make();
  server.requests.length = 0;
  again.wake();
  await eventually('no vector is missing', () => missing() === 0);
  assert.deepEqual(server.requests[0]!.input, ['The user drives an old automobile']);
  assert.deepEqual((await ask('vehicle', again))[0], 'The user drives an old automobile');
});

test('a memory learned while sketches are loaded is found, and a forgotten one is not', async (t) => {
  const { cortex, semantics, ask, missing } = await workbench(t);
  semantics.wake();
  await eventually('no vector is missing', () => missing() === 0);
  await ask('canine');
  await cortex.remember([note('A canine show is in May')], from('t2'));
  semantics.wake();
  await eventually('no vector is missing', () => missing() === 0);
  await eventually('no warning stands', () => semantics.warning() === undefined);
  assert.equal((await ask('puppy pet')).length, 2);
  await cortex.forget(cortex.list({ superseded: true, limit: 9 }).map(({ id }) => id));
  assert.deepEqual(await ask('canine'), []);
});

test('an endpoint that fails gives a warning, is skipped for a while and is then called again; words still work', async (t) => {
  const { clock, semantics, ask, missing, server } = await workbench(t, refusingWith(503));
  semantics.wake();
  await eventually('a warning stands', () => semantics.warning() !== undefined);
  assert.match(semantics.warning()!, /^only full-text search finds memories: the embedding endpoint answered 503/);
  const before = server.requests.length;
  assert.deepEqual(await ask('stamps'), [TEXTS[2]]);
  assert.equal(server.requests.length, before, 'it was not called');
  server.state.script = embedding;
  for (let n = 0; n < 20 && missing() > 0; n++) {
    await clock.advance(5000);
    await eventually('a timer is set, or nothing is missing', () => clock.timers > 0 || missing() === 0);
  }
  await eventually(
    'nothing is missing, and no warning stands',
    () => missing() === 0 && semantics.warning() === undefined,
  );
  await clock.advance(30_000);
  assert.deepEqual(await ask('canine'), [TEXTS[0]]);
});

test('a query waits at most two seconds for its vector', async (t) => {
  const { clock, ask, semantics, server } = await workbench(t, () => {});
  const answer = ask('stamps');
  await eventually('one is missing, or asked for', () => server.requests.length === 1);
  await clock.advance(2000);
  assert.deepEqual(await answer, [TEXTS[2]]);
  assert.match(semantics.warning()!, /did not answer within 2 s/);
});

test('answers that are not vectors are rejected', async (t) => {
  const wrong: EmbeddingScript[] = [
    (_, response) => answerVectors(response, []),
    ({ input }, response) =>
      answerVectors(
        response,
        input.map(() => [0, 0, 0]),
      ),
    ({ input }, response) =>
      answerVectors(
        response,
        input.map(() => []),
      ),
    ({ input }, response) =>
      answerVectors(
        response,
        input.map(() => ['x']),
      ),
    (_, response) => response.end('<html>'),
    refusingWith(401),
  ];
  const { clock, ask, server, semantics } = await workbench(t);
  for (const script of wrong) {
    server.state.script = script;
    assert.deepEqual(await ask('stamps'), [TEXTS[2]]);
    assert.ok(semantics.warning());
    await clock.advance(30_000);
  }
});

test('a memory that the endpoint refuses is left out, and the others get their vectors', async (t) => {
  const { semantics, cortex, missing } = await workbench(t, (request, response) => {
    if (request.input.some((text) => text.includes('physician'))) refusingWith(400)(request, response);
    else embedding(request, response);
  });
  await cortex.remember(
    Array.from({ length: 5 }, (_, at) => note(`Another note, ${at}`)),
    from('t2'),
  );
  semantics.wake();
  await eventually('one is missing, or asked for', () => missing() === 1);
  assert.equal(semantics.warning(), undefined);
});

test('an endpoint that refuses everything is not called for every memory', async (t) => {
  const { semantics, cortex, server } = await workbench(t, refusingWith(400));
  await cortex.remember(
    Array.from({ length: 50 }, (_, at) => note(`Another note, ${at}`)),
    from('t2'),
  );
  semantics.wake();
  await eventually('a warning stands', () => semantics.warning() !== undefined);
  assert.ok(server.requests.length <= 6, String(server.requests.length));
});

test("when the model's dimensions change, all vectors are made again", async (t) => {
  const { semantics, cortex, missing, ask, server } = await workbench(t);
  semantics.wake();
  await eventually('no vector is missing', () => missing() === 0);
  server.state.script = ({ input }, response) =>
    answerVectors(
      response,
      input.map((text) => vectorOf(text, 96)),
    );
  await cortex.remember([note('The user drives an old automobile')], from('t2'));
  semantics.wake();
  await eventually('no vector is missing', () => missing('e/96') === 0);
  assert.deepEqual(await ask('canine'), [TEXTS[0]]);
});
