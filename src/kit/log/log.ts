/** The house's logger: one JSON line per event on stderr, secrets taken out. */
import { type Logger, pino } from 'pino';

export type { Logger } from 'pino';

export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Members that are never written, wherever in a log object they stand. */
const SECRET_MEMBERS = ['token', 'secret', 'authorization', 'signature', 'private_key', 'seed', 'password', 'api_key'];

/**
 * Makes a logger that writes to stderr, so that stdout stays free for results and for MCP.
 *
 * @param system the daemon's name, on every line
 */
export function createLogger(system: string, level: LogLevel = 'info'): Logger {
  const paths = SECRET_MEMBERS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);
  return pino(
    { name: system, level, redact: { paths, censor: '[redacted]' } },
    pino.destination({ fd: 2, sync: true }),
  );
}

/** A logger that says nothing. */
export const silentLogger: Logger = pino({ level: 'silent' });
