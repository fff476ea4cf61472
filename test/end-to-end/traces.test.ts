/** One run from `alarm_set` to the receipt as traces: in one process with the SDK's own exporter, and over OTLP. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { createNeoClient } from '../../src/agents/neo/client.ts';
import { calling, modelEndpoint, type Script, saying } from '../../src/kit/model/testing/model-endpoint.ts';
import { pathOf, type ReadableSpan, recordSpans } from '../../src/kit/trace/testing/recorder.ts';
import { continueTrace } from '../../src/kit/trace/trace.ts';
import { PROGRAM } from '../support/cluster/processes.ts';
import { type CollectedSpan, startCollector } from '../support/collector.ts';
import { reveille } from '../support/command-line.ts';
import { eventually, eventuallyBy } from '../support/eventually.ts';
import { installAgent } from '../support/stand-ins/agents/executable.ts';
import { temporaryFolder } from '../support/temporary.ts';
import { openChronosdWithRouter, USER } from './chronosd-with-router.ts';

/** The stored options of all alarms of a chronosd. */
function storedOptions(folder: string): (string | null)[] {
  const db = new DatabaseSync(join(folder, 'chronos', 'chronos.db'), { readOnly: true });
  try {
    return db
      .prepare('SELECT options FROM definitions ORDER BY id')
      .all()
      .map(({ options }) => options as string | null);
  } finally {
    db.close();
  }
}

/** chronosd and a router in this process, with a program as agent. */
async function withProgram(t: TestContext) {
  const home = realpathSync(temporaryFolder(t));
  installAgent(join(home, 'bin'), 'claude');
  const daemons = await openChronosdWithRouter(t, { PATH: `${join(home, 'bin')}:/usr/bin:/bin`, HOME: home });
  await daemons.put(USER, { provider: 'command', spec: { preset: 'claude', cwd: daemons.work } });
  return daemons;
}

const idsOf = (span: ReadableSpan) => [span.spanContext().traceId, span.spanContext().spanId];
const SECRET = 'what the agent tells itself: the code of the door is 4711';

test('a fire links to the request of its alarm, and its trace ends with the report of the turn', async (t) => {
  const daemons = await withProgram(t);
  const { spans, named, stop } = recordSpans(t);
  const caller = `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`;
  const payload = { door: SECRET };
  const alarm = { wake_message: SECRET, payload: payload as never, label: SECRET };
  const id = await continueTrace(
    caller,
    'tools/call alarm_set',
    () => ({}),
    () => daemons.setAlarm(alarm),
  );
  await daemons.finished(id);
  const [recorded] = await eventually('the report is recorded', () => {
    const found = named('record turn report');
    return found.length > 0 && found;
  });
  stop();

  const [create] = named('create alarms');
  assert.deepEqual(pathOf(create!, spans()), ['tools/call alarm_set', 'create alarms']);
  assert.equal(create!.spanContext().traceId, 'ab'.repeat(16));
  assert.equal(create!.attributes['reveille.alarm.id'], id);
  const [fire] = named('send alarms');
  assert.deepEqual(
    fire!.links.map(({ context }) => [context.traceId, context.spanId]),
    [idsOf(create!)],
  );
  assert.deepEqual([fire!.parentSpanContext, fire!.attributes['reveille.outcome']], [undefined, 'delivered']);
  assert.notEqual(fire!.spanContext().traceId, create!.spanContext().traceId);
  const [report] = named('report turn');
  assert.deepEqual(pathOf(recorded!, spans()), ['send alarms', 'wake', 'deliver', 'report turn', 'record turn report']);
  const [agent] = named('invoke_agent claude');
  assert.deepEqual(pathOf(agent!, spans()), [
    'send alarms',
    'wake',
    'deliver',
    'process alarms',
    'invoke_agent claude',
  ]);
  assert.equal(agent!.attributes['gen_ai.operation.name'], 'invoke_agent');
  assert.equal(report!.attributes['messaging.message.id'], fire!.attributes['messaging.message.id']);
  const [turn] = named('process alarms');
  assert.equal(turn!.attributes['reveille.turn.outcome'], 'done');
  // Neither message nor payload nor label is in any span.
  const said = JSON.stringify(
    spans().map(({ name, attributes, events, links, status }) => [name, attributes, events, links, status]),
  );
  for (const word of ['4711', 'door', 'tells itself']) assert.equal(said.includes(word), false, word);
});

test('an alarm is stored with a traceparent only if its request is recorded', async (t) => {
  const daemons = await withProgram(t);
  const day = { delay_seconds: 86_400 };
  await daemons.setAlarm(day);
  const { named, stop } = recordSpans(t);
  await daemons.setAlarm(day);
  const notRecorded = `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-00`;
  await continueTrace(
    notRecorded,
    'left',
    () => ({}),
    () => daemons.setAlarm(day),
  );
  const forged = { ...day, traceparent: notRecorded.replace(/0$/, '1') };
  await assert.rejects(daemons.setAlarm(forged as never), /traceparent/);
  const { id } = await daemons
    .client()
    .createAlarm({ kind: 'cron', cron_expr: '@hourly', wake_message: 'm', model: 'x' });
  const edited = await daemons.client().patchAlarm(id, { model: 'y' });
  assert.equal('traceparent' in edited, false, 'it is not shown');
  stop();
  await daemons.setAlarm(day);
  const traceOf = (span: ReadableSpan) => `00-${span.spanContext().traceId}-${span.spanContext().spanId}-01`;
  const [first, , series] = named('create alarms');
  assert.deepEqual(storedOptions(daemons.folder), [
    null,
    JSON.stringify({ traceparent: traceOf(first!) }),
    null,
    JSON.stringify({ traceparent: traceOf(series ?? named('create alarms').at(-1)!), model: 'y' }),
    null,
  ]);
});

const TASK = 'Transfer 12.50 EUR from alice to rent.';
const TRANSFER = { from: 'alice', to: 'rent', amount: '12.50', currency: 'EUR' };

/** Sets an alarm when a person asks for it, and hands over the transfer when the alarm fires. */
const agent: Script = (response, request) => {
  const { model, messages } = request.body;
  if (model === 'compiler') {
    const plan = { id: 'pay', kind: 'call', tool: 'ledger/transfer', args: TRANSFER };
    return calling({ name: 'submit_intent', args: { verb: 'transfer', plan } })(response, request);
  }
  const last = messages.at(-1)!;
  if (last.role === 'tool') return saying('Done.')(response, request);
  if (last.content.includes(TASK)) return calling({ name: 'core_execute', args: { intent: TASK } })(response, request);
  if (!last.content.includes('remind yourself')) return saying('Hello.')(response, request);
  const args = { kind: 'once', delay_seconds: 86_400, wake_message: 'The rent again.' };
  return calling({ name: 'chronos__alarm_set', args })(response, request);
};

/** Of a caller at the public listener, which says that it is not recorded. */
const OUTSIDE = `00-${'ef'.repeat(16)}-${'ab'.repeat(8)}-00`;

/** `reveille up` with a collector; resolves with all spans of the run after its end. */
async function tracedRun(t: TestContext) {
  const home = temporaryFolder(t);
  const collector = await startCollector(t);
  const endpoint = await modelEndpoint(t, agent);
  const env = {
    ...{ PATH: process.env.PATH ?? '', HOME: home, REVEILLE_HOME: home },
    ...{ CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0', ROUTER_PUBLIC_PORT: '0' },
    ...{ REVEILLE_APPROVER_DIR: join(home, 'approver'), REVEILLE_APPROVER_STORE: 'file' },
    ...{ NEO_MODEL: 'agent', NEO_CHEAP_MODEL: 'none', NEO_MODEL_BASE_URL: endpoint.baseUrl },
    ...{ EXECUTOR_MODEL: 'compiler', EXECUTOR_MODEL_BASE_URL: endpoint.baseUrl, REVEILLE_LOG: 'info' },
    ...{ REVEILLE_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-key=sesame' },
  };
  const up = spawn(process.execPath, [PROGRAM, 'up', '--json'], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  up.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const exited = once(up, 'exit');
  t.after(() => up.kill('SIGKILL'));
  await eventuallyBy(up, 'up accepts requests', () => existsSync(join(home, 'run.json')), { output: () => log });
  const read = (name: string) => JSON.parse(readFileSync(join(home, name), 'utf8')) as Record<string, string>;
  const json = async (...asked: string[]) => (await reveille(home, [...asked, '--json'], { env })).stdout;
  const isOver = async (id: string) => /"reached":"turn_finished"/.test(await json('alarm', 'show', id));
  // The welcome alarm has started the machine, which sleeps again afterwards.
  const { id: welcome } = JSON.parse(await json('alarm', 'list')) as { id: string };
  await eventually('the welcome turn has ended', () => isOver(welcome));
  const { label } = read('identity.json');
  for (const action of ['suspend', 'restore']) await json('machine', action, label!);
  const started = () => log.split('started a process').length - 1;
  const before = started();
  const mcp = new Client({ name: 'a-client', version: '1' });
  await mcp.connect(
    new StdioClientTransport({ command: process.execPath, args: [PROGRAM, 'mcp'], env, stderr: 'ignore' }),
  );
  const args = { kind: 'once', delay_seconds: 1, wake_message: TASK };
  const set = await mcp.callTool({ name: 'alarm_set', arguments: args });
  const { id: alarmId } = set.structuredContent as { id: string };
  // A client ends its server after four seconds, on a busy computer before the last export.
  await eventually('its spans arrive', () => collector.spans.some(({ name }) => name === 'tools/call alarm_set'));
  await mcp.close();
  await eventually('the fire starts the machine', () => started() > before);
  // With a possible approver, the turn waits for the answer.
  const neo = createNeoClient({ url: read('run.json').public_url!, token: read('person.json').token });
  const over = new AbortController();
  const gates: { intent_id: string; displayed_sha256?: string | undefined; state: string }[] = [];
  const following = (async () => {
    for await (const event of neo.events({ signal: over.signal })) if (event.type === 'gate') gates.push(event.data);
  })().catch(() => {});
  const gate = await eventually('it asks', () => gates.find(({ state }) => state === 'asked'));
  const approve = ['intent', 'approve', gate.intent_id, '--displayed-sha256', gate.displayed_sha256!];
  const { status, stderr } = await reveille(home, approve, { env });
  assert.equal(status, 0, stderr);
  await eventually('its turn has ended', () => isOver(alarmId));
  const chatted = await fetch(`${read('run.json').public_url}/chat`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${read('person.json').token}`,
      'content-type': 'application/json',
      traceparent: OUTSIDE,
    },
    body: JSON.stringify({ message: 'Please remind yourself of the rent.' }),
  });
  const { data } = (await chatted.json()) as { data: { conversation_id: string; turn_id: string } };
  const { conversation_id: talk, turn_id: turn } = data;
  await eventually('Neo has set an alarm', async () => (await neo.turn(talk, turn)).status === 'done');
  over.abort();
  await following;
  const chat = ({ name, links }: CollectedSpan) => name === 'POST /chat' && links.length > 0;
  const isOfChat = ({ traceId }: CollectedSpan) =>
    collector.spans.some((span) => chat(span) && span.traceId === traceId);
  await eventually('the spans of its turn arrive', () =>
    collector.spans.some((span) => span.name === 'turn' && isOfChat(span)),
  );
  up.kill('SIGTERM');
  const [code] = await exited;
  assert.equal(code, 0, log);
  const machineLogs = globSync(join(home, 'router', 'machine-logs', '*.log')).map((file) => readFileSync(file, 'utf8'));
  return { home, spans: collector.spans, metrics: collector.metrics, headers: collector.headers, log, machineLogs };
}

const pathIn = (span: CollectedSpan, spans: readonly CollectedSpan[]): string[] => {
  const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
  return [...(parent ? pathIn(parent, spans) : []), `${span.service}: ${span.name}`];
};

test('"reveille up" exports one run from alarm_set to the receipt over OTLP', async (t) => {
  const { spans, metrics, headers, machineLogs } = await tracedRun(t);
  const file = process.env.REVEILLE_TRACE_SPANS;
  if (file) writeFileSync(file, JSON.stringify(spans));
  const paths = (found: readonly CollectedSpan[]) => found.map((span) => pathIn(span, found).join(' > ')).toSorted();
  const traceOf = ({ traceId }: CollectedSpan) => spans.filter((span) => span.traceId === traceId);
  const call = spans.find(({ name }) => name === 'tools/call alarm_set')!;
  const request = traceOf(call);
  const tool = 'chronos-mcp: tools/call alarm_set';
  assert.deepEqual(paths(request), [tool, `${tool} > up: create alarms`]);
  const ofNeo = spans.find(({ name }) => name === 'execute_tool chronos__alarm_set')!;
  const chat = 'up: POST /chat > neo: turn > neo: invoke_agent Neo';
  assert.deepEqual(
    paths(traceOf(ofNeo)).filter((path) => path.endsWith('create alarms')),
    [`${chat} > neo: execute_tool chronos__alarm_set > up: create alarms`],
  );

  // The caller from outside asked for no record, and for its own trace.
  const person = spans.find(({ name }) => name === 'POST /chat')!;
  const outside = { traceId: 'ef'.repeat(16), spanId: 'ab'.repeat(8) };
  assert.deepEqual([person.links, person.parentSpanId], [[outside], undefined]);
  assert.equal(
    spans.some(({ traceId }) => traceId === outside.traceId),
    false,
  );

  const receipt = spans.find(({ name }) => name === 'receipt')!;
  const fired = traceOf(receipt);
  const fire = fired.find(({ name }) => name === 'send alarms')!;
  const create = request.find(({ name }) => name === 'create alarms')!;
  assert.deepEqual(fire.links, [{ traceId: create.traceId, spanId: create.spanId }]);
  assert.equal(fire.parentSpanId, undefined);
  const turn = 'up: send alarms > up: wake > up: deliver > neo: process alarms';
  const agentPath = `${turn} > neo: invoke_agent Neo`;
  const intent = `${agentPath} > neo: execute_tool core_execute > up: submit intent`;
  assert.deepEqual(
    paths(fired).filter((path) => !/report turn/.test(path)),
    [
      'up: send alarms',
      'up: send alarms > up: wake',
      'up: send alarms > up: wake > up: start machine',
      'up: send alarms > up: wake > up: deliver',
      turn,
      agentPath,
      `${agentPath} > neo: chat agent`,
      `${agentPath} > neo: chat agent`,
      `${agentPath} > neo: execute_tool core_execute`,
      intent,
      `${intent} > up: draft intent`,
      `${intent} > up: draft intent > up: chat compiler`,
      `${intent} > up: execute intent`,
      `${intent} > up: execute intent > up: await approval`,
      `${intent} > up: execute intent > up: execute_tool ledger/transfer`,
      `${intent} > up: execute intent > up: receipt`,
    ].toSorted(),
  );
  assert.ok(paths(fired).some((path) => path.endsWith('neo: report turn > up: record turn report')));
  const attributeOf = (name: string, attribute: string) =>
    fired.find((span) => span.name === name)!.attributes[attribute];
  assert.equal(attributeOf('await approval', 'reveille.approval.outcome'), 'approved');
  assert.equal(attributeOf('receipt', 'reveille.intent.status'), 'completed');
  assert.deepEqual(
    ['input', 'output'].map((type) => attributeOf('chat agent', `gen_ai.usage.${type}_tokens`)),
    [11, 7],
  );
  assert.ok(
    spans.some(({ name }) => name === 'start machine'),
    'the chat or the welcome alarm started it',
  );
  assert.equal(
    spans.some(({ isError }) => isError),
    false,
  );

  const said = JSON.stringify(spans);
  for (const word of ['12.50', 'remind yourself', 'of the rent', 'Transfer', 'sesame'])
    assert.equal(said.includes(word), false, word);
  assert.ok(headers.every((sent) => sent['x-collector-key'] === 'sesame'));
  for (const name of [
    'chronos_in_flight',
    'chronos_fire_lateness_seconds_sum',
    'gen_ai.client.token.usage',
    'router_public_requests_total',
  ])
    assert.ok(metrics.has(name), `${name} is among ${[...metrics].join(', ')}`);
  const lines = machineLogs.join('').split('\n');
  assert.ok(
    lines.some((line) => line.includes(`"trace_id":"${fire.traceId}"`)),
    'log lines of the turn carry its trace',
  );
});

test('without the packages of an exporter the log says how to install them, and alarms fire all the same', async (t) => {
  const home = temporaryFolder(t);
  const env = { CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0', ROUTER_PUBLIC_PORT: '0' };
  const run = (more: Record<string, string>, path = PROGRAM) => {
    const child = spawn(process.execPath, [...NO_EXPORTER, path, 'up', '--once', '--json'], {
      env: { PATH: process.env.PATH, HOME: home, REVEILLE_HOME: home, ...env, ...more },
    });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    return once(child, 'exit').then(([code]) => ({ code: code as number, stderr }));
  };
  const { code, stderr } = await run({ REVEILLE_OTLP_ENDPOINT: 'http://127.0.0.1:9' });
  assert.equal(code, 0, stderr);
  assert.match(
    stderr,
    /run \\"npm install --global @opentelemetry\/sdk-trace@3 @opentelemetry\/exporter-trace-otlp-http@/,
  );
  const wrong = await run({ REVEILLE_OTLP_ENDPOINT: 'collector:4318' });
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /REVEILLE_OTLP_ENDPOINT must be an http/);
});

/** Hides the packages of the exporter from a process. */
const NO_EXPORTER = [
  '--import',
  `data:text/javascript,${encodeURIComponent(`
    import { registerHooks } from 'node:module';
    registerHooks({
      resolve(specifier, context, next) {
        if (/^@opentelemetry\\/(?:sdk|exporter)/.test(specifier)) throw new Error('not installed');
        return next(specifier, context);
      },
    });`)}`,
];
