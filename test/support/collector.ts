/** A collector of OpenTelemetry for tests: OTLP over HTTP, as JSON. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { json } from 'node:stream/consumers';
import { listening, type Owner } from './temporary.ts';

type Value = { stringValue?: string; intValue?: number | string; doubleValue?: number; boolValue?: boolean } & {
  arrayValue?: { values: Value[] };
};
type Attribute = { key: string; value: Value };
type Context = { traceId: string; spanId: string };
type OtlpSpan = Context & {
  name: string;
  kind: number;
  parentSpanId?: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes?: Attribute[];
  links?: Context[];
  status?: { code?: number };
};
type OtlpTraces = {
  resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: OtlpSpan[] }[] }[];
};
type OtlpMetrics = { resourceMetrics: { scopeMetrics: { metrics: { name: string }[] }[] }[] };

export type CollectedSpan = Context & {
  readonly service: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  readonly kind: number;
  readonly parentSpanId: string | undefined;
  readonly links: readonly Context[];
  /** Epoch milliseconds. */
  readonly start: number;
  readonly end: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly isError: boolean;
};

export type Collector = {
  readonly url: string;
  readonly spans: CollectedSpan[];
  /** The names of all metrics. */
  readonly metrics: Set<string>;
  readonly headers: IncomingHttpHeaders[];
};

function readValue({ stringValue, intValue, doubleValue, boolValue, arrayValue }: Value): unknown {
  if (intValue !== undefined) return Number(intValue);
  return stringValue ?? doubleValue ?? boolValue ?? arrayValue?.values.map(readValue);
}

const valuesOf = (attributes: readonly Attribute[] = []) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, readValue(value)]));

const contextOf = ({ traceId, spanId }: Context): Context => ({ traceId, spanId });

function spansOf({ resourceSpans }: OtlpTraces): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(valuesOf(resource.attributes)['service.name']);
    return scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        ...contextOf(span),
        ...{ service, name: span.name, kind: span.kind },
        parentSpanId: span.parentSpanId || undefined,
        links: (span.links ?? []).map(contextOf),
        start: Number(BigInt(span.startTimeUnixNano) / 1000n) / 1000,
        end: Number(BigInt(span.endTimeUnixNano) / 1000n) / 1000,
        attributes: valuesOf(span.attributes),
        isError: span.status?.code === 2,
      })),
    );
  });
}

/** Starts a collector; everything that it gets stays in memory. */
export async function startCollector(owner: Owner): Promise<Collector> {
  const spans: CollectedSpan[] = [];
  const metrics = new Set<string>();
  const headers: IncomingHttpHeaders[] = [];
  const server = createServer(async (request, response) => {
    headers.push(request.headers);
    const body: unknown = await json(request);
    if (request.url === '/v1/traces') spans.push(...spansOf(body as OtlpTraces));
    if (request.url === '/v1/metrics')
      for (const { scopeMetrics } of (body as OtlpMetrics).resourceMetrics)
        for (const scope of scopeMetrics) for (const { name } of scope.metrics) metrics.add(name);
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  return { url: await listening(owner, server), spans, metrics, headers };
}
