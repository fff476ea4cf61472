/** `reveille neo`: one agent daemon in the foreground. */

import { SPAWN_ID_VARIABLE } from '../../kit/process/inherited-variables.ts';
import { printable } from '../../kit/text/hidden-characters.ts';
import { parseNeoConfig } from '../../neo/config.ts';
import { startNeo } from '../../neo/daemon.ts';
import { isOnThisComputer, type Settings } from '../../wire/settings.ts';
import type { CliContext } from '../context.ts';
import { EXIT } from '../exit-status.ts';
import { readLabel, readSubmitter } from '../home/home.ts';
import { runDaemon } from '../up/foreground.ts';
import { neoWalls } from '../up/walls.ts';

/**
 * The executor on this computer knows the submitter's token that `reveille up` has made for the user of this installation; it goes to no
 * other computer. The operator's tokens are never Neo's: with them it could hand tasks over for anybody.
 */
function ownExecutorToken({ settings, home }: CliContext, label: string | undefined): Settings {
  const { NEO_EXECUTOR_URL: url, NEO_EXECUTOR_TOKEN: given } = settings;
  if (url === undefined || !isOnThisComputer(url) || given !== undefined) return {};
  const own = label === readLabel(home) ? readSubmitter(home)?.token : undefined;
  return own === undefined ? {} : { NEO_EXECUTOR_TOKEN: own };
}

export async function neo(context: CliContext): Promise<void> {
  // Not through `tool-options.ts`, which brings chronosd's client along: a woken machine is waited for.
  const { settings, environment } = context;
  const isMachine = environment[SPAWN_ID_VARIABLE] !== undefined;
  const label = settings.MATRIX_USER_ID ?? (isMachine ? undefined : readLabel(context.home));
  const { EXECUTOR_TOKEN: _, EXECUTOR_ADMIN_TOKEN: __, ...less } = settings;
  const variables = {
    ...less,
    ...(label === undefined ? {} : { MATRIX_USER_ID: label }),
    ...ownExecutorToken(context, label),
  };
  const config = parseNeoConfig(variables);
  const { clock } = context;
  // Whoever starts Neo again, with the tools as they should be, finds the turns where they were.
  const onFatal = (error: Error) => {
    process.stderr.write(`${printable(error.message)}\n`);
    process.exit(EXIT.failed);
  };
  await runDaemon(context, 'neo', (log) =>
    startNeo({ config, variables, walls: neoWalls(context, config), clock, log, onFatal }),
  );
}
