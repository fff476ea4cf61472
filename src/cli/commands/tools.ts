/** `reveille neo tools` and `tools pin`: lists the tools of the manifest, and records their definitions. */
import { resolve } from 'node:path';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { SurfaceView } from '../../wire/tool-surface.ts';
import { EXIT } from '../cli-process.ts';
import type { CliContext } from '../context.ts';
import { readRun } from '../home/home.ts';
import { toolOptions } from '../home/neo-manifest.ts';
import { columns, counted, table, wrap } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';
import { facts, type Reader } from '../screens/render.ts';

/** Characters of a description in a line. */
const SHOWN = 300;

/** The first sentence of a description. */
function gist(description: string): string {
  const line = oneLine(description.slice(0, SHOWN).toWellFormed().replace(/\s+/g, ' ').trim());
  return /^.*?[.!?](?= |$)/.exec(line)?.[0] ?? line;
}

export function renderSurface(
  { tools, escalated, off = [], sign_in = [], limits, warnings }: SurfaceView,
  look: Reader,
): string[] {
  const lines = [
    tools.length === 0
      ? 'The model can call nothing.'
      : `The model can call ${look.paint('bold', counted(tools.length, 'function'))}:`,
  ];
  if (tools.length > 0) {
    const rows = tools.map(({ name, description }) => [name, gist(description)]);
    lines.push('', ...table(['FUNCTION', 'DESCRIPTION'], rows, look));
  }
  if (escalated.length > 0) {
    const rows = escalated.map(({ name, reason }) => [name, reason]);
    lines.push('', 'Through core_execute only:', '', ...table(['TOOL', 'REASON'], rows, look));
  }
  if (sign_in.length > 0) {
    const rows = sign_in.map(({ alias, why }) => [alias, oneLine(why)] as const);
    lines.push('', 'Needs sign-in:', '', ...facts(rows, look));
  }
  if (off.length > 0) {
    // Not shortened: its end names the remedy.
    lines.push(
      '',
      'Off:',
      '',
      ...facts(
        off.map(({ alias, why }) => [alias, oneLine(why)] as const),
        look,
      ),
    );
  }
  if (limits !== undefined) lines.push('', ...wrap(`Limits: ${limits}.`, look.width));
  for (const warning of warnings) lines.push('', `${look.paint('yellow', 'Warning')}: ${oneLine(warning)}`);
  return lines;
}

/** No call is made while the tools are listed. */
const notHere = () => Promise.reject(new ReveilleError('unavailable', 'only `reveille neo` makes calls'));

export async function neoTools(context: CliContext): Promise<void> {
  const { spawnTools } = await import('../../agents/neo/tools/start-host.ts');
  const options = await toolOptions(context);
  context.out.progress('Starting the servers of the manifest…');
  // The executor of `reveille up` serves the agent that it starts.
  const hasExecutor = options.config.executor !== undefined || readRun(context.home)?.executor_url !== undefined;
  const surface = await spawnTools({
    ...options,
    // Reports servers that do not start, and tools that differ from their definitions.
    eager: true,
    recall: notHere,
    ...(hasExecutor && { delegate: notHere }),
  });
  try {
    const view = surface.describe();
    context.out.result(view, renderSurface(view, readerOf(context)));
  } finally {
    await surface.close();
  }
}

export async function toolsPin(context: CliContext, manifest: string | undefined): Promise<void> {
  const { pinTools } = await import('../../agents/neo/tools/start-host.ts');
  const options = await toolOptions(context, manifest === undefined ? undefined : resolve(manifest));
  const given = options.config.manifest;
  if (given === undefined) {
    throw new ReveilleError('invalid_request', 'NEO_MANIFEST is "none": name the manifest whose tools to pin');
  }
  context.out.progress('Starting the servers of the manifest…');
  const report = await pinTools({ ...options, config: { ...options.config, manifest: given } });
  const { file, tools, unpinned } = report;
  const look = readerOf(context);
  const differing = tools.filter(({ change }) => change !== 'same');
  const rows = differing.map(({ alias, tool, change }) => [change, oneLine(`${alias}/${tool}`)]);
  const pinned = tools.filter(({ change }) => change !== 'gone').length;
  context.out.result(report, [
    `Pinned ${pinned} tools in ${file}${differing.length === 0 ? '; no changes' : ':'}`,
    ...(rows.length === 0 ? [] : columns(rows, look.width).map((line) => `  ${line}`)),
  ]);
  for (const warning of unpinned) context.out.remark(`Not pinned: ${oneLine(warning)}`);
  if (unpinned.length > 0) context.process.exitCode = EXIT.failed;
}
