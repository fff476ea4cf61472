/** Which names `config.yaml` may hold: those that some part reads, and the name that was probably meant by another. */
import { chronosSettingsSchema } from '../../chronos/config.ts';
import { mcpSettingsSchema } from '../../chronos-mcp/mcp-settings.ts';
import { executorSettingsSchema } from '../../executor/config.ts';
import { neoSettingsSchema } from '../../neo/config.ts';
import { toolSettingsSchema } from '../../neo/tools/settings.ts';
import { notifySettingsSchema } from '../../notify/config.ts';
import { routerSettingsSchema } from '../../router/config.ts';
import { nearestOf } from '../../wire/edit-distance.ts';

/** Read by the command line itself, for every part. */
const COMMON = [
  'REVEILLE_HOME',
  'REVEILLE_LOG',
  'REVEILLE_TLS_CA',
  'REVEILLE_URL',
  'REVEILLE_TOKEN',
  'REVEILLE_HIDDEN',
  'REVEILLE_SHELL_WITHOUT_WALLS',
  'LEDGER_DATA_DIR',
  'CHRONOMETRIC_DATA_DIR',
  'REVEILLE_PROFILE',
  'NEURODOCK_PROFILE_PATH',
];

const keysOf = ({ shape }: { shape: object }) => Object.keys(shape);

const KNOWN: ReadonlySet<string> = new Set([
  ...[chronosSettingsSchema, routerSettingsSchema, neoSettingsSchema, toolSettingsSchema].flatMap(keysOf),
  ...[mcpSettingsSchema, executorSettingsSchema, notifySettingsSchema].flatMap(keysOf),
  ...COMMON,
]);

export const isKnownName = (name: string): boolean => KNOWN.has(name);

/** The known name that resembles this one most, if one does. */
export const nearestName = (name: string): string | undefined => nearestOf(name.toUpperCase(), KNOWN);
