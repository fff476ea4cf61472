import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../../test/support/temporary.ts';
import { type Clock, systemClock } from '../../../kit/clock/clock.ts';
import { silentLogger } from '../../../kit/log/log.ts';
import {
  beginStream,
  calling,
  type EndpointBody,
  endStream,
  modelEndpoint,
  refusing,
  type Script,
  saying,
  sendDelta,
} from '../../../kit/model/testing/model-endpoint.ts';
import type { Turn } from '../../../turns/turn.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import { type ConversationStore, openConversationStore } from '../conversations/store.ts';
import { chooseModel } from '../model.ts';
import { createRunner, type RunnerOptions } from '../runner.ts';
import { surfaceOf, type TestTool } from '../testing/surface.ts';
import { ToolFailure, textAnswer } from '../tools/surface.ts';
import { CALLS_PER_STEP, STEPS_PER_TURN } from './loop.ts';

/** Delays resolve at once. */
const immediateClock: Clock = {
  ...systemClock,
  after: (ms, callback) => systemClock.after(ms > 10_000 ? ms : 0, callback),
};

type Bench = {
  tools?: Readonly<Record<string, TestTool>>;
  scripts: Script[];
  options?: Partial<RunnerOptions>;
};

async function bench(t: TestContext, { tools = {}, scripts, options = {} }: Bench) {
  const dataDir = temporaryFolder(t);
  const store = openConversationStore({ dataDir, clock: systemClock });
  t.after(() => store.close());
  const endpoint = await modelEndpoint(t, ...scripts);
  const config = { kind: 'endpoint', baseUrl: endpoint.baseUrl, model: 'm', apiKey: undefined } as const;
  const surface = surfaceOf(tools);
  const finished = new Map<string, PromiseWithResolvers<Turn>>();
  const ended = (id: string) => {
    const known = finished.get(id) ?? Promise.withResolvers<Turn>();
    finished.set(id, known);
    return known;
  };
  const runner = createRunner({
    store,
    model: chooseModel(config, immediateClock),
    surface: () => Promise.resolve(surface),
    clock: immediateClock,
    log: silentLogger,
    onFinished: (turn) => ended(turn.id).resolve(turn),
    ...options,
  });
  runner.start();
  t.after(() => runner.stop(0));
  let given = 0;
  const accept = async (message = 'Do it.'): Promise<string> => {
    const id = `t${++given}`;
    await store.accept({ id, conversationId: 'c', origin: 'user', message, createdAt: systemClock.now() });
    runner.accepted();
    return id;
  };
  return {
    store,
    endpoint,
    surface,
    runner,
    accept,
    ended: (id: string) => ended(id).promise,
    run: async (message?: string): Promise<Turn> => ended(await accept(message)).promise,
    /** The model's n-th request, from 0. */
    asked: (n: number): EndpointBody => endpoint.requests[n]!.body,
  };
}

const results = ({ messages }: EndpointBody) =>
  messages.filter(({ role }) => role === 'tool').map(({ content }) => content);

const toolEvents = (store: ConversationStore) =>
  store
    .eventsAfter(0, 1000, {})
    .filter(({ type }) => type === 'tool')
    .map(({ data }) => JSON.parse(data));

test("a call is made with the model's arguments, the model gets its result, and its text ends the turn", async (t) => {
  const { run, asked, surface, store, endpoint } = await bench(t, {
    tools: { files__read: { run: ({ path }) => `contents of ${path}` } },
    scripts: [calling('Let me look.', { name: 'files__read', args: { path: '/a/b' } }), saying('It says so.')],
  });
  const turn = await run();
  assert.deepEqual([turn.status, turn.reply], ['done', 'It says so.']);
  assert.deepEqual(surface.calls, [{ name: 'files__read', args: { path: '/a/b' }, callId: 't1.1.0' }]);
  assert.deepEqual(
    asked(0).tools?.map((tool) => tool.function.name),
    ['files__read'],
  );
  const [answer, result] = asked(1).messages.slice(-2);
  assert.equal(answer?.content, 'Let me look.');
  assert.equal(answer?.tool_calls?.[0]?.function.arguments, '{"path":"/a/b"}');
  assert.deepEqual([result?.role, result?.content], ['tool', 'contents of /a/b']);
  assert.equal(result?.tool_call_id, answer?.tool_calls?.[0]?.id);
  assert.equal(endpoint.requests.length, 2);
  const [begun, ended] = toolEvents(store);
  assert.deepEqual([begun.state, begun.name, begun.input], ['begun', 'files__read', '{"path":"/a/b"}']);
  assert.deepEqual([ended.state, ended.is_error, ended.output], ['finished', false, 'contents of /a/b']);
  assert.equal(begun.call_id, ended.call_id);
});

test('calls of one step run concurrently and return in the order of the calls', async (t) => {
  const all = Promise.withResolvers<void>();
  let under = 0;
  const tool: TestTool = {
    async run({ n }) {
      under++;
      if (under === 3) all.resolve();
      // None ends before all have begun; the last to begin is the first to end.
      await all.promise;
      for (let turn = 0; turn < 4 - Number(n); turn++) await new Promise(setImmediate);
      return textAnswer(`answer ${n}`);
    },
  };
  const { run, asked } = await bench(t, {
    tools: { a: tool },
    scripts: [calling(...[1, 2, 3].map((n) => ({ name: 'a', args: { n } }))), saying('ok')],
  });
  assert.equal((await run()).status, 'done');
  assert.deepEqual(results(asked(1)), ['answer 1', 'answer 2', 'answer 3']);
});

test('arguments that are not a JSON object are returned to the model; numbers keep their digits', async (t) => {
  const { run, asked, surface } = await bench(t, {
    tools: { a: { run: () => 'made' } },
    scripts: [
      calling(
        { name: 'a', args: '{"x": ' },
        { name: 'a', args: '[1]' },
        { name: 'a', args: '{"id": 12345678901234567890, "x": 1.10, "y": 1e400, "z": 0.1}' },
        { name: 'a', args: '' },
      ),
      saying('ok'),
    ],
  });
  assert.equal((await run()).status, 'done');
  const [half, list, big, none] = results(asked(1));
  assert.match(half!, /^the arguments must be a JSON object \(/);
  assert.match(list!, /^the arguments must be a JSON object \(got an array\)/);
  assert.deepEqual([big, none], ['made', 'made']);
  assert.deepEqual(
    surface.calls.map(({ args }) => JSON.stringify(args)),
    ['{"id":12345678901234567890,"x":1.10,"y":1e400,"z":0.1}'.replace('1.10', '1.1'), '{}'],
  );
  // The endpoint gets an object back even where the model wrote none.
  for (const { function: f } of asked(1).messages.at(-5)!.tool_calls!) {
    assert.equal(typeof JSON.parse(f.arguments), 'object');
  }
});

test('the model gets an error for an unknown name, and then corrects it', async (t) => {
  const { run, asked } = await bench(t, {
    tools: { right: { run: () => 'done' } },
    scripts: [calling({ name: 'wrnog' }), calling({ name: 'right' }), saying('ok')],
  });
  assert.equal((await run()).status, 'done');
  assert.deepEqual(results(asked(2)), ['unknown tool "wrnog" — it is not available', 'done']);
});

test('a transport failure is retried three times for a repeatable tool, never for another', async (t) => {
  for (const repeatable of [true, false]) {
    const fail = () => {
      throw new ToolFailure('the server died', { mayHaveRun: true, repeatable });
    };
    const { run, asked, surface } = await bench(t, {
      tools: { a: { run: fail, repeatable } },
      scripts: [calling({ name: 'a' }), saying('I could not.')],
    });
    assert.equal((await run()).status, 'done');
    assert.equal(surface.calls.length, repeatable ? 4 : 1);
    assert.equal(new Set(surface.calls.map(({ callId }) => callId)).size, 1);
    const tried = repeatable ? ' (tried 4 times)' : '';
    assert.equal(
      results(asked(1))[0],
      `the call failed on its way: the server died${tried}. It may have taken effect all the same: find out before you repeat it.`,
    );
  }
});

test('the same failing call four times stops the turn, which reports its work and is failed', async (t) => {
  const { run, endpoint, asked } = await bench(t, {
    tools: { a: { run: () => textAnswer('no such file', true) } },
    scripts: [
      ...Array<Script>(2).fill(calling({ name: 'a', args: { p: 1 } })),
      calling({ name: 'a', args: { p: 2 } }),
      ...Array<Script>(2).fill(calling({ name: 'a', args: '{ "p": 1 }' })),
      saying('I looked for the file and did not find it.'),
    ],
  });
  const turn = await run();
  assert.deepEqual(
    [turn.status, turn.error, turn.reply],
    ['failed', 'the turn was stopped: the same call of a failed 4 times', 'I looked for the file and did not find it.'],
  );
  assert.equal(endpoint.requests.length, 6);
  assert.equal(asked(5).tool_choice, 'none');
  assert.match(
    asked(5).messages.at(-1)!.content,
    /^The program stops this turn here: the same call of a failed 4 times/,
  );
});

test('a model that never ends is stopped after its steps, and the turn is failed', async (t) => {
  let n = 0;
  const { run, endpoint, surface } = await bench(t, {
    tools: { a: { run: () => 'ok' } },
    scripts: [
      (response, request) =>
        request.body.tool_choice === 'none'
          ? saying('I got as far as this.')(response, request)
          : calling({ name: 'a', args: { n: n++ } })(response, request),
    ],
  });
  const turn = await run();
  assert.equal(turn.status, 'failed');
  assert.equal(turn.error, `the turn was stopped: it has taken all of its ${STEPS_PER_TURN} steps`);
  assert.equal(turn.reply, 'I got as far as this.');
  assert.deepEqual([surface.calls.length, endpoint.requests.length], [STEPS_PER_TURN, STEPS_PER_TURN + 1]);
});

test('of a thousand calls in one answer the first are made, and the model is informed about the rest', async (t) => {
  const { run, asked, surface } = await bench(t, {
    tools: { a: { run: ({ n }) => `r${n}` } },
    scripts: [calling(...Array.from({ length: 1000 }, (_, n) => ({ name: 'a', args: { n } }))), saying('ok')],
  });
  assert.equal((await run()).status, 'done');
  assert.equal(surface.calls.length, CALLS_PER_STEP);
  assert.equal(results(asked(1)).length, CALLS_PER_STEP);
  assert.match(asked(1).messages.at(-1)!.content, /936 more calls of that answer were not made/);
});

test('arguments of ten megabytes are not parsed; the model is informed, and nothing is called', async (t) => {
  const { run, asked, surface } = await bench(t, {
    tools: { a: { run: () => 'made' } },
    scripts: [calling({ name: 'a', args: { text: 'x'.repeat(10 * 1024 * 1024) } }), saying('I will do it in parts.')],
  });
  const turn = await run();
  assert.deepEqual([turn.status, turn.reply], ['done', 'I will do it in parts.']);
  assert.equal(surface.calls.length, 0);
  assert.match(results(asked(1))[0]!, /^the arguments of this answer's calls were longer than 1048576 characters/);
  assert.ok(JSON.stringify(asked(1)).length < 20_000);
});

test('a truncated answer makes none of its calls, because partial arguments may look complete', async (t) => {
  const cut: Script = (response, request) => {
    const write = response.write.bind(response);
    response.write = ((text: string) => write(text.replace('"tool_calls"}', '"length"}'))) as typeof response.write;
    return calling({ name: 'a' })(response, request);
  };
  const { run, asked, surface } = await bench(t, { tools: { a: { run: () => 'made' } }, scripts: [cut, saying('ok')] });
  assert.equal((await run()).status, 'done');
  assert.equal(surface.calls.length, 0);
  assert.match(results(asked(1))[0]!, /output limit.*none of its calls was made/);
});

test('a stream that breaks in the middle of a call, or invalid calls, are requested again; nothing is called', async (t) => {
  const half: Script = async (response) => {
    beginStream(response);
    sendDelta(response, {
      tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'a', arguments: '{}' } }],
    });
    await new Promise<void>((resolve) => response.write('\n', () => resolve()));
    response.destroy();
  };
  const garbage: Script = (response) => {
    beginStream(response);
    sendDelta(response, { tool_calls: [{ index: 'x', function: 7 }] });
    endStream(response, 'tool_calls');
  };
  const none: Script = (response) => {
    beginStream(response);
    endStream(response, 'tool_calls');
  };
  const { run, surface, endpoint } = await bench(t, {
    tools: { a: { run: () => 'made' } },
    scripts: [half, garbage, none, saying('ok')],
  });
  const turn = await run();
  assert.deepEqual([turn.status, turn.reply], ['done', 'ok']);
  assert.deepEqual([surface.calls.length, endpoint.requests.length], [0, 4]);
});

test('text beside calls is not part of the answer', async (t) => {
  const { run, store } = await bench(t, {
    tools: { a: { run: () => 'made' } },
    scripts: [calling('Let me look.', { name: 'a' }), saying('It is so.')],
  });
  const turn = await run();
  assert.equal(turn.reply, 'It is so.');
  const answer = store.eventsAfter(0, 99, {}).filter(({ type }) => type === 'say');
  assert.deepEqual(
    answer.map(({ data }) => [JSON.parse(data).offset, JSON.parse(data).text]),
    [[0, 'It is so.']],
    'the answer is stored',
  );
});

test('an endpoint that names every call the same does not mix up their results', async (t) => {
  const { run, asked } = await bench(t, {
    tools: { a: { run: ({ n }) => `r${n}` } },
    scripts: [
      calling({ name: 'a', args: { n: 1 }, id: 'call_0' }),
      calling({ name: 'a', args: { n: 2 }, id: 'call_0' }),
      saying('ok'),
    ],
  });
  assert.equal((await run()).status, 'done');
  const ids = asked(2).messages.flatMap(({ tool_call_id }) => tool_call_id ?? []);
  assert.equal(new Set(ids).size, 2);
});

test('an endpoint that fails after calls were made leaves a failed turn that reports them', async (t) => {
  const { run } = await bench(t, {
    tools: { a: { run: () => 'made' } },
    scripts: [calling({ name: 'a' }), refusing(401, 'no')],
  });
  const turn = await run();
  assert.equal(turn.status, 'failed');
  assert.match(turn.error!, /^the model endpoint answered 401: no.* \(the turn had made 1 tool call by then\)$/);
});

test('a message that arrives meanwhile is seen at the next step, once, and keeps its own turn', async (t) => {
  const arrived = Promise.withResolvers<void>();
  const setup = await bench(t, {
    tools: { a: { run: () => arrived.promise.then(() => 'made') } },
    scripts: [calling({ name: 'a' }), calling({ name: 'a' }), saying('first answer'), saying('second answer')],
  });
  const { accept, ended, asked, endpoint } = setup;
  const first = await accept('Do it.');
  const second = await accept('Do it in blue.');
  arrived.resolve();
  assert.equal((await ended(first)).reply, 'first answer');
  assert.equal((await ended(second)).reply, 'second answer');
  const shown = (n: number) => asked(n).messages.filter(({ content }) => content?.includes('Do it in blue.')).length;
  assert.deepEqual([shown(1), shown(2), shown(3)], [1, 1, 1]);
  assert.match(asked(1).messages.find(({ content }) => content?.includes('in blue'))!.content, /^While you work/);
  assert.match(asked(3).messages.at(-1)!.content, /^This reached you while the turn before was still at work/);
  assert.equal(endpoint.requests.length, 4);
});

test('a running turn is cancelled permanently: its call is aborted, and its state is recorded', async (t) => {
  const begun = Promise.withResolvers<void>();
  let reason: unknown;
  const tool: TestTool = {
    run(_args, { signal }) {
      begun.resolve();
      signal.addEventListener('abort', () => {
        reason = signal.reason;
      });
      return new Promise(() => {});
    },
  };
  const { accept, runner, store } = await bench(t, { tools: { a: tool }, scripts: [calling({ name: 'a' })] });
  const id = await accept();
  await begun.promise;
  const turn = await runner.cancel(id);
  assert.equal(turn?.status, 'failed');
  assert.equal(
    turn?.error,
    'cancelled on request (the turn had made 1 tool call by then; the outcome of a is unknown)',
  );
  assert.equal((reason as Error).name, 'TurnCancelled');
  assert.deepEqual(await runner.cancel(id), store.turnById(id), 'again it is as it was');
  assert.equal(await runner.cancel('nobody'), undefined);
});

test('a waiting turn is cancelled before it begins, and the next one runs', async (t) => {
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const tool: TestTool = {
    async run() {
      begun.resolve();
      await go.promise;
      return textAnswer('ok');
    },
  };
  const { accept, ended, runner, endpoint } = await bench(t, {
    tools: { a: tool },
    scripts: [calling({ name: 'a' }), saying('one'), saying('three')],
  });
  const first = await accept('one');
  await begun.promise;
  const second = await accept('two');
  const third = await accept('three');
  const turn = await runner.cancel(second);
  assert.deepEqual([turn?.status, turn?.error], ['failed', 'cancelled on request before it was begun']);
  go.resolve();
  assert.equal((await ended(first)).reply, 'one');
  assert.equal((await ended(third)).reply, 'three');
  assert.equal(endpoint.requests.length, 3);
  assert.equal(runner.state().queued, 0);
});

test('images that a model refuses are removed, and the turn continues', async (t) => {
  const image = { type: 'image', mediaType: 'image/png', data: 'iVBORw0KGgo=' } as const;
  const { run, asked, endpoint } = await bench(t, {
    tools: { a: { run: () => ({ isError: false, content: [{ type: 'text', text: 'look' }, image] }) } },
    scripts: [
      calling({ name: 'a' }),
      refusing(400, 'image_url is not supported'),
      calling({ name: 'a' }),
      saying('ok'),
    ],
  });
  assert.equal((await run()).status, 'done');
  assert.match(JSON.stringify(asked(1)), /data:image\/png;base64,iVBORw0KGgo=/);
  assert.doesNotMatch(JSON.stringify(asked(2)), /iVBORw0KGgo/);
  assert.match(results(asked(2))[0]!, /^look\n\[image, image\/png\]\n\(This model cannot be shown images\.\)$/);
  assert.doesNotMatch(JSON.stringify(asked(3)), /iVBORw0KGgo/, 'it is not tried again');
  assert.equal(endpoint.requests.length, 4);
});

test('another error of a tool surface is an internal error, whose details the model does not get', async (t) => {
  const { run, asked } = await bench(t, {
    tools: {
      a: {
        run: () => {
          throw new TypeError('a secret in a stack');
        },
      },
    },
    scripts: [calling({ name: 'a' }), saying('ok')],
  });
  assert.equal((await run()).status, 'done');
  assert.equal(results(asked(1))[0], 'the call failed by an internal error; whether it took effect is not known');
});

test('a full context is summarized; no identifier is lost, the newest steps stay, and the turn continues', async (t) => {
  const ids = Array.from({ length: 12 }, (_, n) => `0x${String(n).padStart(40, 'abc123')}`);
  const padding = 'words that nobody needs to keep, again and again. '.repeat(60);
  let step = 0;
  const { run, endpoint, store } = await bench(t, {
    tools: { a: { run: ({ n }) => `${ids[Number(n)]} ${padding}` } },
    scripts: [
      (response, request) => {
        if (request.body.messages[0]!.content.startsWith('You shorten the record')) {
          return saying('The agent read pages.')(response, request);
        }
        const next = step < ids.length ? calling({ name: 'a', args: { n: step++ } }) : saying('All read.');
        return next(response, request);
      },
    ],
    options: { contextTokens: 8000 },
  });
  const turn = await run();
  assert.deepEqual([turn.status, turn.reply], ['done', 'All read.']);
  const summaries = endpoint.requests.filter(({ body }) => body.messages[0]!.content.startsWith('You shorten'));
  assert.ok(summaries.length >= 1);
  const { messages } = endpoint.requests.at(-1)!.body;
  const shown = JSON.stringify(messages);
  for (const id of ids) assert.ok(shown.includes(id), id);
  assert.match(shown, /The program around you has replaced what came before/);
  assert.match(messages[1]!.content, /Do it\./, 'the question itself stays');
  assert.ok(messages.at(-1)!.content.includes(padding), 'the newest result stays whole');
  assert.ok(store.eventsAfter(0, 999, {}).some(({ data }) => data.includes('the context is nearly full')));
});

test('a context that cannot be made to fit stops the turn, which reports it', async (t) => {
  const wall = Array.from({ length: 3000 }, (_, n) => `/data/${n}/${(n * 7919).toString(36)}.json`).join('\n');
  const { run } = await bench(t, {
    tools: { a: { run: () => wall } },
    scripts: [calling({ name: 'a' }), saying('short')],
    options: { contextTokens: 8000 },
  });
  const turn = await run();
  assert.equal(turn.status, 'failed');
  assert.match(turn.error!, /does not fit into the model \(NEO_CONTEXT_TOKENS\)$/);
});

test('the model gets a result only when it is on disk, and a call is made only when it is on disk', async (t) => {
  const { run, store, surface, endpoint } = await bench(t, {
    tools: { a: { run: () => 'made' } },
    scripts: [calling({ name: 'a' }), saying('ok')],
  });
  const refused = (n: number) => new ReveilleError('unavailable', `the disk is full (${n})`);
  const { beginStep, finishCall } = store.journal;
  let refusals = 0;
  store.journal.beginStep = (...given) => {
    assert.equal(surface.calls.length, 0);
    return refusals++ < 3 ? Promise.reject(refused(refusals)) : beginStep(...given);
  };
  store.journal.finishCall = (...given) => {
    assert.equal(endpoint.requests.length, 1);
    return refusals++ < 7 ? Promise.reject(refused(refusals)) : finishCall(...given);
  };
  assert.equal((await run()).status, 'done');
  assert.deepEqual([refusals, surface.calls.length, endpoint.requests.length], [8, 1, 2]);
});
