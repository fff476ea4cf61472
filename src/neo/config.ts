/** Neo's configuration (docs/contracts.md §11). */
import { join } from 'node:path';
import { z } from 'zod';
import { type Door, doorSettings, hostNames, isLoopback, parseDoor } from '../kit/http/door.ts';
import { type ModelConfig, modelSettings, parseModelConfig } from '../kit/model/settings.ts';
import type { SeparationMode } from '../kit/process/separation.ts';
import { ReveilleError } from '../wire/errors.ts';
import { REPEAT_SECONDS, REPEAT_SECONDS_MAX } from '../wire/fire-id.ts';
import {
  parseSettings,
  portSetting,
  type Settings,
  secretSetting,
  separationSetting,
  switchSetting,
  urlSetting,
  wholeNumber,
} from '../wire/settings.ts';
import { parseToolConfig, type ToolConfig } from './tools/settings.ts';
import { RETRY_LADDER, type RetryLadder } from './turn.ts';

export type NeoConfig = {
  readonly host: string;
  readonly port: number;
  /** An open descriptor on which whoever started Neo hears where it listens. */
  readonly portChannel?: number | undefined;
  readonly door?: Door;
  readonly dataDir: string;
  /** `undefined`: every request is let in; only in development and only on loopback. */
  readonly token: string | undefined;
  /** `Host` values that pass besides loopback names and `host`. */
  readonly allowedHosts: readonly string[];
  /** What the agent can do; nothing when absent. */
  readonly tools?: ToolConfig | undefined;
  /** Without an endpoint Neo answers by itself, from what reached it. */
  readonly model: ModelConfig;
  /**
   * The model at the same endpoint that learns from turns; the first one when absent, and `null` when none is to learn.
   */
  readonly cheapModel?: string | null | undefined;
  /**
   * The model at the same endpoint that makes embeddings of memories; they are found by their words alone when absent.
   */
  readonly embedModel?: string | undefined;
  /** What the model can read at once, in tokens; kept under by compaction. */
  readonly contextTokens: number;
  /** Turns that may wait; more are refused. */
  readonly maxQueued?: number;
  /** For how long the same wake without a fire id is one wake; 0: never. A day unless given. */
  readonly repeatMs?: number;
  /** When wakes' turns are tried again that failed for a reason that passes; as `turn.ts` says unless given. */
  readonly ladder?: RetryLadder;
  /** Where chronosd takes receipts; without it none are sent. */
  readonly chronosUrl?: string;
  /** Whether its MCP servers run behind walls. */
  readonly separation: SeparationMode;
  /** Sentences for the log: what was let through that should not stay so. */
  readonly warnings: readonly string[];
};

const hostName = /^[A-Za-z0-9.:[\]_-]{1,253}$/;

/** The variables that Neo reads. */
export const neoSettingsSchema = z.object({
  /** Where it listens. */
  NEO_HOST: z.string().regex(hostName, 'must be an address or a host name').default('127.0.0.1'),
  /** The port; 8080 unless it, or `PORT`, is told. 0 lets the system pick one. */
  NEO_PORT: portSetting.optional(),
  ...doorSettings('NEO'),
  /** Where platforms say the port, instead of `NEO_PORT`. */
  PORT: portSetting.optional(),
  /** A descriptor on which whoever started it hears where it listens; a router sets it. */
  REVEILLE_PORT_FD: wholeNumber(3, 1023).optional(),
  /** Names by which others reach it, besides loopback names and the host; with commas between them. */
  NEO_ALLOWED_HOSTS: z.string().optional(),
  /** The folder of conversations and memory; `neo` below `REVEILLE_HOME` unless told. */
  NEO_DATA_DIR: z.string().optional(),
  /** The folder of an installation, in which the data folders are that are not told. */
  REVEILLE_HOME: z.string().optional(),
  /** The bearer of its requests. */
  NEO_DAEMON_TOKEN: secretSetting.regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces').optional(),
  /** Goes without the token on loopback, while developing. */
  NEO_DEV: switchSetting.default(false),
  /** Whether programs that a daemon starts run behind walls: where it can be, always, or never. */
  REVEILLE_SEPARATION: separationSetting,
  /** The model at the same endpoint that learns from turns; `NEO_MODEL` unless told, `none` for no learning. */
  NEO_CHEAP_MODEL: z.string().max(200).optional(),
  /**
   * The model at the same endpoint that makes embeddings of memories; they are found by their words alone without it.
   */
  NEO_EMBED_MODEL: z.string().max(200).optional(),
  ...modelSettings('NEO'),
  /** Where chronosd takes turn reports; without it none are sent. */
  NEO_CHRONOS_URL: urlSetting.optional(),
  /** Turns that may wait; more are refused. */
  NEO_MAX_QUEUED: wholeNumber(1, 1_000_000).default(1000),
  /** For how long the same wake without a fire id is one wake; 0: never. */
  NEO_REPEAT_SECONDS: wholeNumber(0, REPEAT_SECONDS_MAX).default(REPEAT_SECONDS),
  /**
   * After how long the turn of a wake is tried again that failed for a reason that passes; twice as long each time.
   * 0: never.
   */
  NEO_RETRY_SECONDS: wholeNumber(0, 24 * 3600).default(RETRY_LADDER.firstMs / 1000),
  /** For how long it is tried. */
  NEO_RETRY_HOURS: wholeNumber(0, 24 * 30).default(RETRY_LADDER.giveUpMs / 3600_000),
  /** What the model can read at once; kept under by compaction. */
  NEO_CONTEXT_TOKENS: wholeNumber(4000, 10_000_000).default(128_000),
});

type NeoSettings = z.output<typeof neoSettingsSchema>;

const DEFAULT_PORT = 8080;
/** Whoever hears where Neo listens needs no port that was free a moment ago: the system picks one that is. */
const ANY_PORT = 0;
/** What stands in `NEO_CHEAP_MODEL` for no learning. */
const NO_MODEL = 'none';

function stop(message: string): never {
  throw new ReveilleError('invalid_request', message);
}

function dataDirOf({ NEO_DATA_DIR, REVEILLE_HOME }: NeoSettings): string {
  if (NEO_DATA_DIR !== undefined) return NEO_DATA_DIR;
  if (REVEILLE_HOME !== undefined) return join(REVEILLE_HOME, 'neo');
  return stop('NEO_DATA_DIR is not set: give a folder for conversations, or set REVEILLE_HOME');
}

/**
 * Reads Neo's variables.
 *
 * @throws ReveilleError `invalid_request` naming every variable that is missing or wrong, and what is allowed
 */
export function parseNeoConfig(settings: Settings): NeoConfig {
  const read = parseSettings(neoSettingsSchema, settings);
  if (read.NEO_DAEMON_TOKEN === undefined) {
    if (!read.NEO_DEV) {
      stop('NEO_DAEMON_TOKEN is not set: give a secret of at least 16 characters, or NEO_DEV=1 while developing');
    }
    if (!isLoopback(read.NEO_HOST)) {
      const got = JSON.stringify(read.NEO_HOST);
      stop(`NEO_DAEMON_TOKEN is not set: without it NEO_HOST must be a loopback address (got ${got})`);
    }
  }
  const { model, warnings } = parseModelConfig('NEO', settings);
  const dataDir = dataDirOf(read);
  return Object.freeze({
    host: read.NEO_HOST,
    port: read.NEO_PORT ?? (read.REVEILLE_PORT_FD === undefined ? (read.PORT ?? DEFAULT_PORT) : ANY_PORT),
    portChannel: read.REVEILLE_PORT_FD,
    door: parseDoor('NEO', read.NEO_HOST, settings),
    dataDir,
    allowedHosts: hostNames(read.NEO_ALLOWED_HOSTS),
    token: read.NEO_DAEMON_TOKEN,
    tools: parseToolConfig(settings, dataDir),
    model,
    cheapModel: read.NEO_CHEAP_MODEL === NO_MODEL ? null : read.NEO_CHEAP_MODEL,
    embedModel: read.NEO_EMBED_MODEL,
    contextTokens: read.NEO_CONTEXT_TOKENS,
    maxQueued: read.NEO_MAX_QUEUED,
    repeatMs: read.NEO_REPEAT_SECONDS * 1000,
    ladder: {
      firstMs: read.NEO_RETRY_SECONDS * 1000,
      longestMs: Math.max(RETRY_LADDER.longestMs, read.NEO_RETRY_SECONDS * 1000),
      giveUpMs: read.NEO_RETRY_HOURS * 3600_000,
    },
    separation: read.REVEILLE_SEPARATION,
    ...(read.NEO_CHRONOS_URL === undefined ? {} : { chronosUrl: read.NEO_CHRONOS_URL }),
    warnings: [
      ...(read.NEO_DAEMON_TOKEN === undefined
        ? ['NEO_DAEMON_TOKEN is not set: any program on this computer may talk to this agent (NEO_DEV=1)']
        : []),
      ...warnings,
    ],
  });
}
