/**
 * Traces and metrics through the API of OpenTelemetry. A process without an exporter does not load the API: every
 * function here then returns after one comparison.
 *
 * The current span is stored here and not in OpenTelemetry's context. The exporter thus needs no context package. A
 * process without an exporter still passes on the `traceparent` of its caller (W3C Trace Context §3.2).
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import type * as OpenTelemetry from '@opentelemetry/api';
import type { Clock } from '../clock/clock.ts';

export type { Attributes, Span } from '@opentelemetry/api';

/** In HTTP a header; in MCP a member of `_meta` (SEP-414). */
export const TRACEPARENT = 'traceparent';

type Span = OpenTelemetry.Span;
type Attributes = OpenTelemetry.Attributes;

/** The properties of a span. They must not contain texts of users or models, payloads, or secrets. */
export type SpanFacts = {
  kind?: 'server' | 'client' | 'producer' | 'consumer';
  attributes?: Attributes;
  /** The `traceparent` of each span that caused this one in another trace; invalid ones are ignored. */
  links?: readonly (string | undefined)[];
};

/** The attributes of an operation on a fire. In the semantic conventions for messaging, the fire is the message. */
export const messagingFacts = (operation: 'create' | 'send' | 'process', more?: Attributes): Attributes => ({
  'messaging.system': 'reveille',
  'messaging.destination.name': 'alarms',
  'messaging.operation.name': operation,
  'messaging.operation.type': operation,
  ...more,
});

/**
 * The span of a tool call. An invalid tool name is text of a model, so it is replaced by `unknown`.
 *
 * @param id of the call
 */
export function toolSpan(tool: string, id?: string): { name: string; facts: () => SpanFacts } {
  const shown = /^[\w.:/-]{1,128}$/.test(tool) ? tool : 'unknown';
  return {
    name: `execute_tool ${shown}`,
    facts: () => ({
      attributes: {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': shown,
        'gen_ai.tool.call.id': id,
      },
    }),
  };
}

/** The position of running code in a trace. `span` is absent if the trace is not recorded in this process. */
type Place = { readonly traceparent: string; readonly span?: Span };

type Active = {
  readonly api: typeof OpenTelemetry;
  readonly tracer: OpenTelemetry.Tracer;
  readonly meter: OpenTelemetry.Meter | undefined;
  readonly histograms: Map<string, OpenTelemetry.Histogram>;
  readonly mayBegin: () => boolean;
  /** The position that an unsampled trace passes on, so that no other process records a part of it. */
  readonly notRecorded: Place;
};

let active: Active | undefined;
const places = new AsyncLocalStorage<Place>();

/** Token bucket of new traces: its size, and its refill per second. */
const BURST = 100;
const PER_SECOND = 50;

/** Limits the traces that begin in this process, so that a burst of fires does not create a span for each. */
function tracesPerSecond(clock: Clock): () => boolean {
  let left = BURST;
  let countedAt = clock.monotonic();
  return () => {
    const now = clock.monotonic();
    left = Math.min(BURST, left + ((now - countedAt) / 1000) * PER_SECOND);
    countedAt = now;
    if (left < 1) return false;
    left--;
    return true;
  };
}

/**
 * Starts to record spans in this process.
 *
 * @param api the module of OpenTelemetry's API
 * @param providers the providers of its SDK
 * @returns stops recording
 */
export function startTracing(
  api: typeof OpenTelemetry,
  providers: { tracer: OpenTelemetry.Tracer; meter?: OpenTelemetry.Meter | undefined },
  clock: Clock,
): () => void {
  const traceparent = `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-00`;
  const started: Active = {
    ...{ api, tracer: providers.tracer, meter: providers.meter, histograms: new Map() },
    ...{ mayBegin: tracesPerSecond(clock), notRecorded: { traceparent } },
  };
  active = started;
  return () => {
    if (active === started) active = undefined;
  };
}

/** Whether this process records spans. */
export const isTracing = (): boolean => active !== undefined;

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Reads a `traceparent` of any version; `undefined` for an invalid one (W3C Trace Context §3.2.2). */
export function readTraceparent(text: unknown): OpenTelemetry.SpanContext | undefined {
  const [, version, traceId, spanId, flags, more] = (typeof text === 'string' && FORM.exec(text)) || [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
}

function writeTraceparent({ traceId, spanId, traceFlags }: OpenTelemetry.SpanContext): string {
  return `00-${traceId}-${spanId}-0${traceFlags & 1}`;
}

/** The `traceparent` for a call of another process; `undefined` outside of a trace. */
export const traceparent = (): string | undefined => places.getStore()?.traceparent;

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({});

/** {@link traceparent} as a header; none outside of a trace. */
export function traceHeaders(): Readonly<Record<string, string>> {
  const place = places.getStore();
  return place === undefined ? NO_HEADERS : { [TRACEPARENT]: place.traceparent };
}

/** The `traceparent` of the current span if it is recorded, so that a later trace can link to it. */
export const recordedTrace = (): string | undefined => {
  const place = places.getStore();
  return place?.span && place.traceparent;
};

const NO_FIELDS = Object.freeze({});

/** The trace members of a log line within a recorded span. */
export function logFields(): object {
  const context = places.getStore()?.span?.spanContext();
  return context === undefined ? NO_FIELDS : { trace_id: context.traceId, span_id: context.spanId };
}

/** The class of an error: the code of a ReveilleError, else the name. Never the message, which may quote a user. */
function classOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return '_OTHER';
  return 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : thrown.name;
}

/** Marks a span as failed. @param type a class of failures, such as `timeout` */
export function failSpan(span: Span | undefined, type: string): void {
  if (!span || !active) return;
  span.setAttribute('error.type', type);
  span.setStatus({ code: active.api.SpanStatusCode.ERROR });
}

/** Runs the work of a span, and ends the span with it. */
function within<T>(span: Span, work: (span?: Span) => T): T {
  const end = (thrown?: { error: unknown }) => {
    if (thrown) failSpan(span, classOf(thrown.error));
    span.end();
  };
  const place = { traceparent: writeTraceparent(span.spanContext()), ...(span.isRecording() && { span }) };
  let result: T;
  try {
    result = places.run(place, work, place.span);
  } catch (error) {
    end({ error });
    throw error;
  }
  if (!(result instanceof Promise)) {
    end();
    return result;
  }
  const ended = result.then(
    (value: unknown) => {
      end();
      return value;
    },
    (error: unknown) => {
      end({ error });
      throw error;
    },
  );
  return ended as T;
}

function begin<T>(
  { api, tracer }: Active,
  name: string,
  facts: SpanFacts,
  { parent, work }: { parent: OpenTelemetry.Context; work: (span?: Span) => T },
): T {
  const { kind, attributes, links = [] } = facts;
  const KINDS = api.SpanKind;
  const kinds = { server: KINDS.SERVER, client: KINDS.CLIENT, producer: KINDS.PRODUCER, consumer: KINDS.CONSUMER };
  const span = tracer.startSpan(
    name,
    {
      kind: kind === undefined ? KINDS.INTERNAL : kinds[kind],
      ...(attributes && { attributes }),
      links: links.flatMap((text) => {
        const context = readTraceparent(text);
        return context ? [{ context }] : [];
      }),
    },
    parent,
  );
  return within(span, work);
}

/**
 * Runs work in a new trace. The trace is recorded unless too many begin or the sampler of the process rejects it.
 *
 * @param facts called only if it may be recorded
 * @param work gets the span while it is recorded
 */
export function beginTrace<T>(name: string, facts: () => SpanFacts, work: (span?: Span) => T): T {
  if (active === undefined) return work();
  if (!active.mayBegin()) return places.run(active.notRecorded, work);
  return begin(active, name, facts(), { parent: active.api.ROOT_CONTEXT, work });
}

/**
 * Runs work in the trace of an authenticated caller, or in a new trace. A trace that the caller does not record is not
 * recorded here either.
 *
 * @param caller its `traceparent`; an invalid one is ignored
 */
export function continueTrace<T>(
  caller: string | undefined,
  name: string,
  facts: () => SpanFacts,
  work: (span?: Span) => T,
): T {
  const context = caller === undefined ? undefined : readTraceparent(caller);
  if (context === undefined) return beginTrace(name, facts, work);
  if (active === undefined || context.traceFlags === 0)
    return places.run({ traceparent: writeTraceparent(context) }, work);
  const { trace, ROOT_CONTEXT } = active.api;
  return begin(active, name, facts(), { parent: trace.setSpanContext(ROOT_CONTEXT, context), work });
}

/** Runs work in a child of the current span. Outside of a recorded trace, no span is created. */
export function inSpan<T>(name: string, facts: () => SpanFacts, work: (span?: Span) => T): T {
  const around = active && places.getStore()?.span;
  if (!active || !around) return work();
  const { trace, ROOT_CONTEXT } = active.api;
  return begin(active, name, facts(), { parent: trace.setSpan(ROOT_CONTEXT, around), work });
}

const DURATIONS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576];

/** Histograms, named by the semantic conventions where these have a name. */
export const HISTOGRAMS = {
  'messaging.process.duration': ['s', 'Duration of the turn', DURATIONS],
  'gen_ai.client.operation.duration': ['s', 'Duration of a request to a model', DURATIONS],
  'gen_ai.client.token.usage': ['{token}', 'Tokens of a request to a model', TOKENS],
} as const;

/** Records a value of a histogram, in its unit. @param facts called only if it is exported */
export function measure(name: keyof typeof HISTOGRAMS, value: number, facts?: () => Attributes): void {
  if (active?.meter === undefined) return;
  const { meter, histograms } = active;
  let histogram = histograms.get(name);
  if (!histogram) {
    const [unit, description, boundaries] = HISTOGRAMS[name];
    histogram = meter.createHistogram(name, {
      unit,
      description,
      advice: { explicitBucketBoundaries: [...boundaries] },
    });
    histograms.set(name, histogram);
  }
  histogram.record(value, facts?.());
}

/** A metric of a Prometheus registry. */
type Metric = {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  get(): Promise<{
    /** `metricName` is present for the series of a histogram. */
    values: readonly {
      value: number;
      labels: Readonly<Record<string, string | number>>;
      metricName?: string | undefined;
    }[];
  }>;
};

/**
 * Exports the metrics of a Prometheus registry under their names. Of a histogram it exports the sum and the count. So a
 * fire updates only one set of metrics.
 */
export function mirrorMetrics(registry: { getMetricsAsArray(): readonly object[] }): void {
  const meter = active?.meter;
  if (meter === undefined) return;
  // Values are read later: at this time, their sources may not exist.
  for (const metric of registry.getMetricsAsArray() as readonly Metric[]) {
    const { name, help: description, type } = metric;
    const series = type === 'histogram' ? [`${name}_sum`, `${name}_count`] : [name];
    for (const one of series) {
      const options = { description };
      const instrument =
        type === 'gauge' ? meter.createObservableGauge(one, options) : meter.createObservableCounter(one, options);
      instrument.addCallback(async (result) => {
        // An unavailable or closed store has no values.
        const { values } = await metric.get().catch(() => ({ values: [] }));
        for (const { value, labels, metricName = name } of values)
          if (metricName === one) result.observe(value, labels);
      });
    }
  }
}
