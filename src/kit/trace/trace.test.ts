import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ReveilleError } from '../../wire/errors.ts';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { pathOf, recordSpans } from './testing/recorder.ts';
import {
  beginTrace,
  continueTrace,
  inSpan,
  isTracing,
  logFields,
  measure,
  messagingFacts,
  mirrorMetrics,
  readTraceparent,
  recordedTrace,
  toolSpan,
  traceHeaders,
  traceparent,
} from './trace.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const SAMPLED = `00-${TRACE}-${SPAN}-01`;
const NOT_SAMPLED = `00-${TRACE}-${SPAN}-00`;
const none = () => ({});
const never = () => assert.fail('the facts of a span that is not recorded are not needed');

describe('reading a traceparent', () => {
  for (const [text, flags] of [
    [SAMPLED, 1],
    [NOT_SAMPLED, 0],
    [`00-${TRACE}-${SPAN}-03`, 1],
    [`cc-${TRACE}-${SPAN}-01`, 1],
    [`cc-${TRACE}-${SPAN}-01-what-the-future-adds`, 1],
  ] as const)
    test(`${text} is valid`, () => {
      assert.deepEqual(readTraceparent(text), { traceId: TRACE, spanId: SPAN, traceFlags: flags, isRemote: true });
    });

  for (const text of [
    '',
    'garbage',
    undefined,
    7,
    ['00'],
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    ` ${SAMPLED}`,
    `${SAMPLED}, ${SAMPLED}`,
    `${SAMPLED}\n`,
    `00-${TRACE}-${SPAN}-zz`,
    `00-${TRACE}-${SPAN}-01-${'x'.repeat(100_000)}`,
  ])
    test(`${JSON.stringify(text)?.slice(0, 90)} is ignored`, () => assert.equal(readTraceparent(text), undefined));
});

describe('without an exporter', () => {
  test('work runs without a span, and nothing is computed for one', async () => {
    assert.equal(isTracing(), false);
    assert.equal(
      beginTrace('a', never, (span) => [span, traceparent()].length),
      2,
    );
    assert.equal(await inSpan('b', never, async (span) => span), undefined);
    assert.equal(
      continueTrace(undefined, 'c', never, () => traceparent()),
      undefined,
    );
    assert.deepEqual([traceHeaders(), logFields(), recordedTrace()], [{}, {}, undefined]);
    measure('gen_ai.client.token.usage', 1, never);
  });

  test('the traceparent of a caller is passed on, and an invalid one is not', async () => {
    const passed = await continueTrace(SAMPLED, 'a', never, async () => inSpan('b', never, () => traceHeaders()));
    assert.deepEqual(passed, { traceparent: SAMPLED });
    assert.equal(continueTrace(SAMPLED, 'a', never, recordedTrace), undefined, 'it is not stored');
    assert.deepEqual(continueTrace('garbage', 'a', never, traceHeaders), {});
  });
});

test('spans are below the current one, also over asynchronous work', async (t) => {
  const { spans, named } = recordSpans(t);
  await beginTrace('outer', none, async () => {
    await inSpan('first', none, async () => {});
    await Promise.all([
      inSpan('second', none, async () => inSpan('third', none, async () => {})),
      inSpan('fourth', none, () => 4),
    ]);
  });
  assert.deepEqual(
    spans().map((span) => pathOf(span, spans()).join(' ')),
    ['outer first', 'outer fourth', 'outer second third', 'outer second', 'outer'],
  );
  assert.equal(new Set(spans().map((span) => span.spanContext().traceId)).size, 1);
  inSpan('alone', never, () => {});
  assert.deepEqual(named('alone'), [], 'outside of a trace there is no span');
});

test('a new trace links to the spans that caused it, and ignores what is around it', (t) => {
  const { named } = recordSpans(t);
  const links = [SAMPLED, 'garbage', undefined];
  beginTrace('outer', none, () =>
    beginTrace(
      'fire',
      () => ({ kind: 'producer', links }),
      () => {},
    ),
  );
  const [fire] = named('fire');
  assert.equal(fire!.parentSpanContext, undefined);
  assert.notEqual(fire!.spanContext().traceId, TRACE);
  assert.deepEqual(
    fire!.links.map(({ context }) => [context.traceId, context.spanId]),
    [[TRACE, SPAN]],
  );
});

test("a caller's trace continues; one that it does not record is not recorded here either, and passed on", (t) => {
  const { spans } = recordSpans(t);
  continueTrace(SAMPLED, 'taken', none, (span) => {
    assert.equal(traceparent(), `00-${TRACE}-${span!.spanContext().spanId}-01`);
    assert.equal(recordedTrace(), traceparent());
    assert.deepEqual(logFields(), { trace_id: TRACE, span_id: span!.spanContext().spanId });
  });
  continueTrace(NOT_SAMPLED, 'left', never, (span) => {
    assert.equal(span, undefined);
    inSpan('below', never, () => assert.deepEqual(traceHeaders(), { traceparent: NOT_SAMPLED }));
    assert.deepEqual([recordedTrace(), logFields()], [undefined, {}]);
  });
  const [taken] = spans();
  assert.equal(spans().length, 1);
  assert.deepEqual(
    [taken!.spanContext().traceId, taken!.parentSpanContext?.spanId, taken!.parentSpanContext?.isRemote],
    [TRACE, SPAN, true],
  );
});

test('a failure is an error without its message, and reaches the caller', async (t) => {
  const { named } = recordSpans(t);
  const secret = 'the message quotes a user';
  const failing = (error: unknown) => async () => {
    throw error;
  };
  await assert.rejects(beginTrace('ours', none, failing(new ReveilleError('conflict', secret))), /quotes/);
  await assert.rejects(beginTrace('other', none, failing(new TypeError(secret))));
  assert.throws(() => beginTrace('now', none, () => assert.fail(secret)));
  const typeOf = (name: string) => named(name)[0]!.attributes['error.type'];
  assert.deepEqual([typeOf('ours'), typeOf('other'), typeOf('now')], ['conflict', 'TypeError', 'ERR_ASSERTION']);
  for (const name of ['ours', 'other', 'now']) {
    assert.equal(named(name)[0]!.status.code, 2);
    assert.equal(JSON.stringify([named(name)[0]!.attributes, named(name)[0]!.events]).includes('quotes'), false);
  }
});

test('a burst begins a limited number of traces; the others are passed on as not recorded', async (t) => {
  const clock = new ManualClock();
  const { named } = recordSpans(t, { clock });
  let notRecorded = '';
  for (let n = 0; n < 1000; n++)
    beginTrace('fire', none, (span) => {
      if (!span) notRecorded = traceparent()!;
    });
  assert.equal(named('fire').length, 100);
  assert.match(notRecorded, /^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  await clock.advance(1000);
  for (let n = 0; n < 1000; n++) beginTrace('fire', none, () => {});
  assert.equal(named('fire').length, 150);
});

test('the name of a tool is shown only if a tool can have it', () => {
  assert.equal(toolSpan('chronos__alarm_set').name, 'execute_tool chronos__alarm_set');
  assert.equal(toolSpan('ledger/transfer').name, 'execute_tool ledger/transfer');
  for (const text of ['pay Bob 12 EUR', '', 'x'.repeat(129), 'a\nb']) {
    const { name, facts } = toolSpan(text);
    assert.deepEqual([name, facts().attributes!['gen_ai.tool.name']], ['execute_tool unknown', 'unknown']);
  }
});

test('facts of messaging have the names of the conventions', () => {
  assert.deepEqual(messagingFacts('send', { 'messaging.message.id': 'f' }), {
    'messaging.system': 'reveille',
    'messaging.destination.name': 'alarms',
    'messaging.operation.name': 'send',
    'messaging.operation.type': 'send',
    'messaging.message.id': 'f',
  });
});

test('the metrics of a Prometheus registry are exported under their names, and distributions too', async (t) => {
  const { Counter, Gauge, Histogram, Registry } = await import('prom-client');
  const { InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader, AggregationTemporality } = await import(
    '@opentelemetry/sdk-metrics'
  );
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const meters = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter })] });
  t.after(() => meters.shutdown());
  recordSpans(t, { meter: meters.getMeter('test') });
  const registry = new Registry();
  const registers = [registry];
  new Gauge({ name: 'due', help: 'Due', registers }).set(3);
  new Counter({ name: 'attempts_total', help: 'Attempts', labelNames: ['outcome'], registers }).inc(
    { outcome: 'ok' },
    2,
  );
  new Histogram({ name: 'took', help: 'Took', registers }).observe(1.5);
  mirrorMetrics(registry);
  measure('gen_ai.client.token.usage', 12, () => ({ 'gen_ai.token.type': 'input' }));
  measure('gen_ai.client.token.usage', 30, () => ({ 'gen_ai.token.type': 'input' }));
  await meters.forceFlush();
  const found = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
  const pointOf = (name: string) => found.find(({ descriptor }) => descriptor.name === name)?.dataPoints[0];
  assert.equal(pointOf('due')?.value, 3);
  assert.deepEqual([pointOf('attempts_total')?.value, pointOf('attempts_total')?.attributes], [2, { outcome: 'ok' }]);
  assert.deepEqual([pointOf('took'), pointOf('took_sum')?.value, pointOf('took_count')?.value], [undefined, 1.5, 1]);
  const tokens = pointOf('gen_ai.client.token.usage')!.value as { sum: number; count: number };
  assert.deepEqual([tokens.sum, tokens.count], [42, 2]);
});
