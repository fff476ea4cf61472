/** `reveille tools pin`: writes down how each tool is described now, so that Neo notices when one changes. */

import { resolve } from 'node:path';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { CliContext } from '../context.ts';
import { EXIT } from '../exit-status.ts';
import { columns } from '../screens/columns.ts';
import { lookOf } from '../screens/look.ts';
import { toolOptions } from '../up/tool-options.ts';

export async function toolsPin(context: CliContext, manifest: string | undefined): Promise<void> {
  const { pinTools } = await import('../../neo/tools/pin.ts');
  const options = await toolOptions(context, manifest === undefined ? undefined : resolve(manifest));
  const given = options.config.manifest;
  if (given === undefined) {
    throw new ReveilleError(
      'invalid_request',
      'NEO_MANIFEST is "none": name the manifest whose tools are to be pinned',
    );
  }
  context.out.progress('Starting the servers of the manifest…');
  const report = await pinTools({ ...options, config: { ...options.config, manifest: given } });
  const { file, tools, unpinned } = report;
  const look = lookOf(context);
  const differing = tools.filter(({ change }) => change !== 'same');
  const rows = differing.map(({ alias, tool, change }) => [change, oneLine(`${alias}/${tool}`)]);
  const pinned = tools.filter(({ change }) => change !== 'gone').length;
  context.out.result(report, [
    `Pinned ${pinned} tools in ${file}${differing.length === 0 ? '; nothing has changed' : ':'}`,
    ...(rows.length === 0 ? [] : columns(rows, look.width).map((line) => `  ${line}`)),
  ]);
  for (const warning of unpinned) context.out.remark(`Not pinned: ${oneLine(warning)}`);
  if (unpinned.length > 0) context.process.exitCode = EXIT.failed;
}
