/** Sends spans and metrics to a collector by OTLP over HTTP, with packages that the operator installs. */
import { createRequire } from 'node:module';
import type * as OpenTelemetry from '@opentelemetry/api';
import type { Logger } from 'pino';
import { ReveilleError } from '../../wire/errors.ts';
import { VERSION } from '../../wire/version.ts';
import { type Clock, wait } from '../clock/clock.ts';
import { startTracing } from './trace.ts';

/** Optional packages: together with their dependencies they have half the size of Reveille's package. */
const TRACES = ['@opentelemetry/sdk-trace@3', '@opentelemetry/exporter-trace-otlp-http@0.301'] as const;
const METRICS = ['@opentelemetry/sdk-metrics@3', '@opentelemetry/exporter-metrics-otlp-http@0.301'] as const;

/** Time limit of the last export, so that a slow collector cannot delay the end of a process. */
const LAST_EXPORT_MS = 3000;
/** Minimum interval between log lines about failed exports. */
const COMPLAINT_MS = 60_000;

export type OtlpOptions = {
  /** The collector's base address, such as `http://127.0.0.1:4318`, without a trailing slash. */
  endpoint: string;
  /** The name of this process in traces: `chronosd`, `router`. */
  service: string;
  clock: Clock;
  log: Logger;
};

type SdkTrace = typeof import('@opentelemetry/sdk-trace');
type TraceExporter = typeof import('@opentelemetry/exporter-trace-otlp-http');
type SdkMetrics = typeof import('@opentelemetry/sdk-metrics');
type MetricExporter = typeof import('@opentelemetry/exporter-metrics-otlp-http');

/** Imports an optional package. Its name is not a literal, so that bundlers do not include it. */
const load = (specifier: string): Promise<unknown> => import(specifier.replace(/@[\d.]+$/, ''));

/** @throws ReveilleError `unavailable` naming the command, if the packages are not installed */
async function loadTraces(): Promise<SdkTrace & TraceExporter> {
  try {
    const [sdk, exporter] = (await Promise.all(TRACES.map(load))) as [SdkTrace, TraceExporter];
    return { ...sdk, ...exporter };
  } catch (cause) {
    const command = `npm install --global ${[...TRACES, ...METRICS].join(' ')}`;
    const message = `traces are disabled: REVEILLE_OTLP_ENDPOINT needs packages that are not installed; run "${command}", or unset the setting`;
    throw new ReveilleError('unavailable', message, { retryable: false, cause });
  }
}

/** Metrics are exported if their packages are installed too. */
async function loadMetrics(): Promise<(SdkMetrics & MetricExporter) | undefined> {
  try {
    const [sdk, exporter] = (await Promise.all(METRICS.map(load))) as [SdkMetrics, MetricExporter];
    return { ...sdk, ...exporter };
  } catch {
    return undefined;
  }
}

/** Logs failed exports, at most once per minute. */
function reportProblems(api: typeof OpenTelemetry, { clock, log }: OtlpOptions): void {
  let quietUntil = 0;
  const report = (reason: string) => {
    if (clock.monotonic() < quietUntil) return;
    quietUntil = clock.monotonic() + COMPLAINT_MS;
    log.warn({ reason: reason.slice(0, 300) }, 'spans or metrics could not be exported');
  };
  const ignore = () => {};
  const logger = { error: report, warn: report, info: ignore, debug: ignore, verbose: ignore };
  api.diag.setLogger(logger, { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true });
}

/**
 * Starts to record spans in this process and to export them in batches. The exporter itself reads the standard variables
 * `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_EXPORTER_OTLP_TIMEOUT`.
 *
 * @returns exports the rest within three seconds, and stops
 * @throws ReveilleError `unavailable` if the packages are not installed
 */
export async function startOtlp(options: OtlpOptions): Promise<() => Promise<void>> {
  const { endpoint, service, clock } = options;
  const [traces, metrics] = await Promise.all([loadTraces(), loadMetrics()]);
  // The import must resolve to the file that the metrics library loads, because its state is in that module.
  const require = createRequire(import.meta.url);
  const api: typeof OpenTelemetry = require('@opentelemetry/api');
  reportProblems(api, options);
  const attributes = { 'service.name': service, 'service.namespace': 'reveille', 'service.version': VERSION };
  const resource = {
    attributes,
    merge: () => resource,
    getRawAttributes: () => Object.entries(attributes),
  };
  const tracers = new traces.TracerProvider({
    resource,
    spanProcessors: [
      new traces.BatchSpanProcessor({ exporter: new traces.OTLPTraceExporter({ url: `${endpoint}/v1/traces` }) }),
    ],
  });
  const meters =
    metrics &&
    new metrics.MeterProvider({
      resource,
      readers: [
        new metrics.PeriodicExportingMetricReader({
          exporter: new metrics.OTLPMetricExporter({ url: `${endpoint}/v1/metrics` }),
        }),
      ],
    });
  const stop = startTracing(
    api,
    { tracer: tracers.getTracer('reveille', VERSION), meter: meters?.getMeter('reveille', VERSION) },
    clock,
  );
  return async () => {
    stop();
    const sent = new AbortController();
    const last = Promise.allSettled([tracers.shutdown(), meters?.shutdown()]).then(() => sent.abort());
    await Promise.race([last, wait(clock, LAST_EXPORT_MS, sent.signal)]);
  };
}
