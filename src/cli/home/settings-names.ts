/** The names that `config.yaml` may contain, and the known name that is most similar to a wrong one. */
import { neoSettingsSchema } from '../../agents/neo/config.ts';
import { toolSettingsSchema } from '../../agents/neo/tools/settings.ts';
import { chronosSettingsSchema } from '../../chronos/config.ts';
import { mcpSettingsSchema } from '../../chronos-mcp/mcp-settings.ts';
import { executorSettingsSchema } from '../../executor/config.ts';
import { mcpHttpSettingsSchema } from '../../mcp-http/config.ts';
import { notifySettingsSchema } from '../../notify/config.ts';
import { routerSettingsSchema } from '../../router/config.ts';
import { nearestOf } from '../../wire/edit-distance.ts';

/** The settings of each daemon. */
export const SETTINGS_OF = {
  chronosd: [chronosSettingsSchema],
  router: [routerSettingsSchema, mcpHttpSettingsSchema],
  neo: [neoSettingsSchema, toolSettingsSchema],
  executor: [executorSettingsSchema],
  notifier: [notifySettingsSchema],
  mcp: [mcpSettingsSchema],
} as const;

/** Settings that earlier versions had, and wrote to `config.yaml`: they are ignored. */
export const RETIRED: ReadonlySet<string> = new Set(['CHRONOS_CLAIM_LEASE_SECONDS']);

/** Settings of the command line itself, for every daemon: names and defaults. */
export const COMMON = {
  /** The folder with keys, tokens and data of an installation. `config.yaml` in it has settings, too. */
  REVEILLE_HOME: '~/.reveille',
  /** The log level of daemons: `silent`, `fatal`, `error`, `warn`, `info`, `debug` or `trace`. */
  REVEILLE_LOG: 'info',
  /** A file of certificates to trust besides those of Node.js. */
  REVEILLE_TLS_CA: '',
  /** The public listener of a router, for `chat`, `log` and `open`; by default the one on this computer. */
  REVEILLE_URL: '',
  /** A user's credential for it. */
  REVEILLE_TOKEN: '',
  /** Folders that programs in a sandbox do not see, besides those of Reveille; separated by colons. */
  REVEILLE_HIDDEN: '',
  /** `1` runs the executor's shell on a system without a sandbox. */
  REVEILLE_SHELL_WITHOUT_WALLS: '',
  /** The folder of the ledger of play money; by default `ledger` below `REVEILLE_HOME`. */
  LEDGER_DATA_DIR: '',
  /** The folder of the user's sessions; by default `chronometric` below `REVEILLE_HOME`. */
  CHRONOMETRIC_DATA_DIR: '',
  /** The file of the user's profile. */
  REVEILLE_PROFILE: '',
  /** The older name of the same setting. */
  NEURODOCK_PROFILE_PATH: '',
} as const;

/** Read from the environment alone, by commands of a user: no file of an installation may set them. */
export const OF_THE_PERSON = {
  /** The folder of the approver's key; by default `reveille-approver` in the user's configuration folder. */
  REVEILLE_APPROVER_DIR: '',
  /** The storage of that key: `keyring` or `file`; by default the keyring if there is one. */
  REVEILLE_APPROVER_STORE: '',
  /** A file with the passphrase of the approver's key, for scripts. */
  REVEILLE_APPROVER_PASSPHRASE_FILE: '',
  /** A file with the passphrase of a backup, for scripts. */
  REVEILLE_BACKUP_PASSPHRASE_FILE: '',
  /** Node's folder of compiled code; by default beside the program. */
  NODE_COMPILE_CACHE: '',
} as const;

const KNOWN: ReadonlySet<string> = new Set([
  ...Object.values(SETTINGS_OF).flatMap((schemas) => schemas.flatMap(({ shape }) => Object.keys(shape))),
  ...Object.keys(COMMON),
]);

/** All names that `config.yaml` may contain. */
export const knownNames = (): string[] => [...KNOWN];

export const isKnownName = (name: string): boolean => KNOWN.has(name);

/** The known name that is most similar, if one is. */
export const nearestName = (name: string): string | undefined => nearestOf(name.toUpperCase(), KNOWN);
