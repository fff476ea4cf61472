/** Neo's configuration (docs/reference/settings.md). */
import { join } from 'node:path';
import { z } from 'zod';
import {
  hostNames,
  type ListenerSettings,
  listenerSettings,
  parseListenerSettings,
  requireToken,
} from '../../kit/http/listener-settings.ts';
import { type ModelConfig, modelSettings, parseModelConfig } from '../../kit/model/endpoint.ts';
import { type Prices, pricesSetting } from '../../kit/model/prices.ts';
import type { IsolationMode } from '../../kit/process/isolation.ts';
import { RETRY_POLICY, type RetryPolicy } from '../../turns/turn.ts';
import { REPEAT_SECONDS, REPEAT_SECONDS_MAX } from '../../wire/fire-id.ts';
import {
  hostSetting,
  isolationSetting,
  parseSettings,
  portSetting,
  type Settings,
  stopStart,
  switchSetting,
  tokenSetting,
  urlSetting,
  wholeNumber,
} from '../../wire/settings.ts';
import { parseToolConfig, type ToolConfig } from './tools/settings.ts';

export type NeoConfig = {
  readonly host: string;
  readonly port: number;
  /** An open descriptor on which the parent process reads where Neo listens. */
  readonly portChannel?: number | undefined;
  readonly listener?: ListenerSettings;
  readonly dataDir: string;
  /** `undefined`: no request needs a token; only in development and only on loopback. */
  readonly token: string | undefined;
  /** `Host` values that are accepted besides loopback names and `host`. */
  readonly allowedHosts: readonly string[];
  /** The manifest of the agent's tools; none when absent. */
  readonly tools?: ToolConfig | undefined;
  /** Without an endpoint Neo answers by itself, from its input. */
  readonly model: ModelConfig;
  /** The model at the same endpoint for learning; the main model when absent, and `null` for no learning. */
  readonly cheapModel?: string | null | undefined;
  /** The model at the same endpoint for embeddings of memories; without it only full-text search finds them. */
  readonly embedModel?: string | undefined;
  /** For the cost of turns. */
  readonly prices?: Prices | undefined;
  /** The size of the model's context, in tokens; compaction keeps it below. */
  readonly contextTokens: number;
  /** The limit of waiting turns; more are refused. */
  readonly maxQueued?: number;
  /** How long the same wake without a fire id counts as one wake; 0: never. One day by default. */
  readonly repeatMs?: number;
  /** When wakes' turns are retried after a temporary failure; the defaults are in `turn.ts`. */
  readonly retryPolicy?: RetryPolicy;
  /** Where chronosd accepts turn reports; without it none are sent. */
  readonly chronosUrl?: string;
  /** Whether its MCP servers run in a sandbox. */
  readonly isolation: IsolationMode;
  /** Warnings for the log about accepted settings that should not stay. */
  readonly warnings: readonly string[];
};

/** The variables that Neo reads. */
export const neoSettingsSchema = z.object({
  /** The address to listen on. */
  NEO_HOST: hostSetting,
  /** The port; by default `PORT`, else 8080. 0 lets the system pick one. */
  NEO_PORT: portSetting.optional(),
  ...listenerSettings('NEO'),
  /** The port variable of hosting platforms, used without `NEO_PORT`. */
  PORT: portSetting.optional(),
  /** A descriptor on which the parent process reads where Neo listens; a router sets it. */
  REVEILLE_PORT_FD: wholeNumber(3, 1023).optional(),
  /** Comma-separated host names of Neo, besides loopback names and the host. */
  NEO_ALLOWED_HOSTS: z.string().optional(),
  /** The folder of conversations and memory; `neo` below `REVEILLE_HOME` by default. */
  NEO_DATA_DIR: z.string().optional(),
  /** The folder with keys, tokens and data of an installation. `config.yaml` in it has settings, too. */
  REVEILLE_HOME: z.string().optional(),
  /** The bearer of its requests. */
  NEO_DAEMON_TOKEN: tokenSetting.optional(),
  /** Allows a start without the token on loopback, for development. */
  NEO_DEV: switchSetting.default(false),
  /** Whether child programs of a daemon run in a sandbox: where possible, always, or never. */
  REVEILLE_SEPARATION: isolationSetting,
  /** The model at the same endpoint for learning; `NEO_MODEL` by default, `none` for no learning. */
  NEO_CHEAP_MODEL: z.string().max(200).optional(),
  /** The model at the same endpoint for embeddings of memories; without it only full-text search finds them. */
  NEO_EMBED_MODEL: z.string().max(200).optional(),
  ...modelSettings('NEO'),
  /** Prices for the cost of turns, as `model=input/output`, in dollars for a million tokens; `*` is any other model. */
  NEO_MODEL_PRICES: pricesSetting.optional(),
  /** Where chronosd takes turn reports; without it none are sent. */
  NEO_CHRONOS_URL: urlSetting.optional(),
  /** The limit of waiting turns; more are refused. */
  NEO_MAX_QUEUED: wholeNumber(1, 1_000_000).default(1000),
  /** How long the same wake without a fire id counts as one wake; 0: never. */
  NEO_REPEAT_SECONDS: wholeNumber(0, REPEAT_SECONDS_MAX).default(REPEAT_SECONDS),
  /** The first delay before a wake's turn is retried after a temporary failure; it doubles each time. 0: never. */
  NEO_RETRY_SECONDS: wholeNumber(0, 24 * 3600).default(RETRY_POLICY.firstMs / 1000),
  /** How long such a turn is retried. */
  NEO_RETRY_HOURS: wholeNumber(0, 24 * 30).default(RETRY_POLICY.giveUpMs / 3600_000),
  /** The size of the model's context; compaction keeps it below. */
  NEO_CONTEXT_TOKENS: wholeNumber(4000, 10_000_000).default(128_000),
});

type NeoSettings = z.output<typeof neoSettingsSchema>;

const DEFAULT_PORT = 8080;
/** With a descriptor for the port the system picks a free one. */
const ANY_PORT = 0;
/** The value of `NEO_CHEAP_MODEL` for no learning. */
const NO_MODEL = 'none';

function dataDirOf({ NEO_DATA_DIR, REVEILLE_HOME }: NeoSettings): string {
  if (NEO_DATA_DIR !== undefined) return NEO_DATA_DIR;
  if (REVEILLE_HOME !== undefined) return join(REVEILLE_HOME, 'neo');
  return stopStart('NEO_DATA_DIR is not set: give a folder for conversations, or set REVEILLE_HOME');
}

/**
 * Reads Neo's variables.
 *
 * @throws ReveilleError `invalid_request` naming every missing or wrong variable, and the allowed values
 */
export function parseNeoConfig(settings: Settings): NeoConfig {
  const read = parseSettings(neoSettingsSchema, settings);
  const { NEO_DAEMON_TOKEN: token, NEO_DEV: isDev, NEO_HOST: host } = read;
  requireToken('NEO_DAEMON_TOKEN', 'NEO', { token, isDev, host });
  const { model, warnings } = parseModelConfig('NEO', settings);
  const dataDir = dataDirOf(read);
  const config: NeoConfig = {
    host,
    port: read.NEO_PORT ?? (read.REVEILLE_PORT_FD === undefined ? (read.PORT ?? DEFAULT_PORT) : ANY_PORT),
    portChannel: read.REVEILLE_PORT_FD,
    listener: parseListenerSettings('NEO', host, settings),
    dataDir,
    allowedHosts: hostNames(read.NEO_ALLOWED_HOSTS),
    token,
    tools: parseToolConfig(settings, dataDir),
    model,
    cheapModel: read.NEO_CHEAP_MODEL === NO_MODEL ? null : read.NEO_CHEAP_MODEL,
    embedModel: read.NEO_EMBED_MODEL,
    prices: read.NEO_MODEL_PRICES,
    contextTokens: read.NEO_CONTEXT_TOKENS,
    maxQueued: read.NEO_MAX_QUEUED,
    repeatMs: read.NEO_REPEAT_SECONDS * 1000,
    retryPolicy: {
      firstMs: read.NEO_RETRY_SECONDS * 1000,
      longestMs: Math.max(RETRY_POLICY.longestMs, read.NEO_RETRY_SECONDS * 1000),
      giveUpMs: read.NEO_RETRY_HOURS * 3600_000,
    },
    isolation: read.REVEILLE_SEPARATION,
    ...(read.NEO_CHRONOS_URL === undefined ? {} : { chronosUrl: read.NEO_CHRONOS_URL }),
    warnings: [
      ...(read.NEO_DAEMON_TOKEN === undefined
        ? ['NEO_DAEMON_TOKEN is not set: any program on this computer may talk to this agent (NEO_DEV=1)']
        : []),
      ...warnings,
    ],
  };
  return Object.freeze(config);
}
