/** Records the spans of this process in memory, with the SDK of OpenTelemetry. */
import { createRequire } from 'node:module';
import type { TestContext } from 'node:test';
import type * as OpenTelemetry from '@opentelemetry/api';
import { InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { type Clock, systemClock } from '../../clock/clock.ts';
import { startTracing } from '../trace.ts';

export type { ReadableSpan } from '@opentelemetry/sdk-trace';

export const openTelemetry: typeof OpenTelemetry = createRequire(import.meta.url)('@opentelemetry/api');

/** @returns the ended spans, the first that ended first */
export function recordSpans(
  t: Pick<TestContext, 'after'>,
  { clock = systemClock, meter }: { clock?: Clock; meter?: OpenTelemetry.Meter } = {},
): { spans: () => ReadableSpan[]; named: (name: string) => ReadableSpan[]; stop: () => void } {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  const stop = startTracing(openTelemetry, { tracer: provider.getTracer('test'), meter }, clock);
  t.after(stop);
  const spans = () => exporter.getFinishedSpans();
  return { spans, named: (name) => spans().filter((span) => span.name === name), stop };
}

/** The names of a span's links, its parent and itself within one trace: what a picture of it would show. */
export function pathOf(span: ReadableSpan, spans: readonly ReadableSpan[]): string[] {
  const parent = spans.find((one) => one.spanContext().spanId === span.parentSpanContext?.spanId);
  return [...(parent ? pathOf(parent, spans) : []), span.name];
}
