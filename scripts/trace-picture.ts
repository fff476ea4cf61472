/**
 * `node scripts/trace-picture.ts SPANS.json > PICTURE.svg`: draws the traces of one run, from the request of an alarm to
 * the receipt, as a timeline. `REVEILLE_TRACE_SPANS=SPANS.json npm run test:all -- test/end-to-end/traces.test.ts`
 * writes the spans as a collector received them.
 */
import { readFileSync } from 'node:fs';
import type { CollectedSpan } from '../test/support/collector.ts';

const WIDTH = 1120;
const NAMES = 390;
const ROW = 24;
const MARGIN = 24;
const HEAD = 96;
const BETWEEN = 44;
const SANS = `font-family="system-ui, sans-serif"`;
/** By the process, which is a service in OpenTelemetry. Readable on white and by most people who see few colours. */
const COLOURS: Readonly<Record<string, string>> = { 'chronos-mcp': '#b45309', up: '#1d4ed8', neo: '#047857' };

type Row = { span: CollectedSpan; depth: number };

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** The spans of a trace below each other, children after their parent. */
function rowsOf(spans: readonly CollectedSpan[]): Row[] {
  const below = (parent: string | undefined, depth: number): Row[] =>
    spans
      .filter(({ parentSpanId }) => parentSpanId === parent)
      .toSorted((one, other) => one.start - other.start)
      .flatMap((span) => [{ span, depth }, ...below(span.spanId, depth + 1)]);
  return below(undefined, 0);
}

const duration = (ms: number) => (ms < 1000 ? `${ms.toFixed(ms < 10 ? 1 : 0)} ms` : `${(ms / 1000).toFixed(2)} s`);

function drawTrace(title: string, rows: readonly Row[], top: number): string[] {
  const first = Math.min(...rows.map(({ span }) => span.start));
  const last = Math.max(...rows.map(({ span }) => span.end));
  const scale = (WIDTH - NAMES - MARGIN - 70) / (last - first);
  const height = rows.length * ROW;
  const ticks = [0, 1, 2, 3, 4].map((quarter) => {
    const x = NAMES + (quarter / 4) * (last - first) * scale;
    const label = duration((quarter / 4) * (last - first));
    return [
      `<line x1="${x.toFixed(1)}" y1="${top - 4}" x2="${x.toFixed(1)}" y2="${top + height}" stroke="#e5e7eb"/>`,
      `<text x="${x.toFixed(1)}" y="${top - 8}" ${SANS} font-size="10" fill="#6b7280">${label}</text>`,
    ].join('');
  });
  const lines = rows.map(({ span, depth }, index) => {
    const y = top + index * ROW;
    const x = NAMES + (span.start - first) * scale;
    const width = Math.max(2, (span.end - span.start) * scale);
    const colour = COLOURS[span.service] ?? '#4b5563';
    return [
      `<text x="${MARGIN + depth * 14}" y="${y + 15}" ${SANS} font-size="12" fill="#111827">${escaped(span.name)}</text>`,
      `<rect x="${x.toFixed(1)}" y="${y + 4}" width="${width.toFixed(1)}" height="15" rx="3" fill="${colour}"/>`,
      `<text x="${(x + width + 5).toFixed(1)}" y="${y + 15}" ${SANS} font-size="10" fill="#374151">${duration(span.end - span.start)}</text>`,
    ].join('');
  });
  const head = `<text x="${MARGIN}" y="${top - 22}" ${SANS} font-size="13" font-weight="600" fill="#111827">${escaped(title)}</text>`;
  return [head, ...ticks, ...lines];
}

/** The picture of the request, and of the fire that links to it. @throws Error if the spans have no receipt */
export function tracePicture(spans: readonly CollectedSpan[]): string {
  const receipt = spans.find(({ name }) => name === 'receipt');
  const fire = spans.find(({ name, traceId }) => name === 'send alarms' && traceId === receipt?.traceId);
  const [link] = fire?.links ?? [];
  if (!fire || !link) throw new Error('the spans have no fire with a link and a receipt');
  const traceOf = (id: string) => rowsOf(spans.filter(({ traceId }) => traceId === id));
  const [request, fired] = [traceOf(link.traceId), traceOf(fire.traceId)];
  const firstTop = HEAD;
  const secondTop = firstTop + request.length * ROW + BETWEEN + 34;
  const height = secondTop + fired.length * ROW + MARGIN;
  const services = [...new Set([...request, ...fired].map(({ span }) => span.service))];
  const legend = services.map((service, index) => {
    const x = MARGIN + index * 150;
    return `<rect x="${x}" y="32" width="12" height="12" rx="2" fill="${COLOURS[service] ?? '#4b5563'}"/><text x="${x + 18}" y="42" ${SANS} font-size="12" fill="#374151">${escaped(service)}</text>`;
  });
  const y = firstTop + request.length * ROW + 22;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="Two traces of one alarm as a timeline">`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    `<text x="${MARGIN}" y="20" ${SANS} font-size="14" font-weight="600" fill="#111827">One alarm in traces, by process</text>`,
    ...legend,
    ...drawTrace('Trace of the request', request, firstTop),
    `<text x="${MARGIN}" y="${y}" ${SANS} font-size="12" fill="#6b7280">↑ “send alarms” links to “create alarms” of ${link.traceId.slice(0, 8)}…, ${duration(fire.start - request[0]!.span.start)} later; days may be between them</text>`,
    ...drawTrace('Trace of the fire, to the receipt and the report of the turn', fired, secondTop),
    '</svg>',
    '',
  ].join('\n');
}

if (import.meta.main) {
  const [file] = process.argv.slice(2);
  if (file === undefined) throw new Error('name the file with the spans');
  process.stdout.write(tracePicture(JSON.parse(readFileSync(file, 'utf8')) as CollectedSpan[]));
}
