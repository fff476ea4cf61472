/** Which names `config.yaml` may hold: those that some part reads, and the name that was probably meant by another. */
import { chronosSettingsSchema } from '../../chronos/config.ts';
import { mcpSettingsSchema } from '../../chronos-mcp/mcp-settings.ts';
import { executorSettingsSchema } from '../../executor/config.ts';
import { neoSettingsSchema } from '../../neo/config.ts';
import { toolSettingsSchema } from '../../neo/tools/settings.ts';
import { notifySettingsSchema } from '../../notify/config.ts';
import { routerSettingsSchema } from '../../router/config.ts';
import { nearestOf } from '../../wire/edit-distance.ts';

/** The settings of each part. */
export const SETTINGS_OF = {
  chronosd: [chronosSettingsSchema],
  router: [routerSettingsSchema],
  neo: [neoSettingsSchema, toolSettingsSchema],
  executor: [executorSettingsSchema],
  notifier: [notifySettingsSchema],
  mcp: [mcpSettingsSchema],
} as const;

/** Read by the command line itself, for every part: names, with what counts unless they are told. */
export const COMMON = {
  /** The folder with keys, tokens and data of an installation. `config.yaml` in it has settings, too. */
  REVEILLE_HOME: '~/.reveille',
  /** From which level on daemons log: `silent`, `fatal`, `error`, `warn`, `info`, `debug` or `trace`. */
  REVEILLE_LOG: 'info',
  /** A file of certificates to trust besides those of Node.js. */
  REVEILLE_TLS_CA: '',
  /** The public listener of a router, for `chat`, `log` and `open`; that of this machine unless told. */
  REVEILLE_URL: '',
  /** A person's credential for it. */
  REVEILLE_TOKEN: '',
  /** Folders that programs behind walls do not see, besides those of the house; with colons between them. */
  REVEILLE_HIDDEN: '',
  /** `1` runs the executor's shell where there can be no walls around it. */
  REVEILLE_SHELL_WITHOUT_WALLS: '',
  /** The folder of the ledger of play money; `ledger` below `REVEILLE_HOME` unless told. */
  LEDGER_DATA_DIR: '',
  /** The folder of the person's sessions; `chronometric` below `REVEILLE_HOME` unless told. */
  CHRONOMETRIC_DATA_DIR: '',
  /** The file of the person's profile. */
  REVEILLE_PROFILE: '',
  /** The same, by its older name. */
  NEURODOCK_PROFILE_PATH: '',
} as const;

/** Read from the environment alone, and by commands that a person runs: no file of an installation may decide them. */
export const OF_THE_PERSON = {
  /** The folder of the approver's key; `reveille-approver` where the system keeps a person's configuration unless told. */
  REVEILLE_APPROVER_DIR: '',
  /** Where that key is kept: `keyring` or `file`; the keyring where there is one. */
  REVEILLE_APPROVER_STORE: '',
  /** A file with the passphrase of the approver's key, for scripts. */
  REVEILLE_APPROVER_PASSPHRASE_FILE: '',
  /** A file with the passphrase of a backup, for scripts. */
  REVEILLE_BACKUP_PASSPHRASE_FILE: '',
  /** Where Node keeps compiled code; beside the program unless told. */
  NODE_COMPILE_CACHE: '',
} as const;

const KNOWN: ReadonlySet<string> = new Set([
  ...Object.values(SETTINGS_OF).flatMap((schemas) => schemas.flatMap(({ shape }) => Object.keys(shape))),
  ...Object.keys(COMMON),
]);

/** All names that `config.yaml` may contain. */
export const knownNames = (): string[] => [...KNOWN];

export const isKnownName = (name: string): boolean => KNOWN.has(name);

/** The known name that resembles this one most, if one does. */
export const nearestName = (name: string): string | undefined => nearestOf(name.toUpperCase(), KNOWN);
