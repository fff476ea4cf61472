/** Reveille's logger: one JSON line per event on stderr, with secrets redacted. */
import { type Logger, pino } from 'pino';

export type { Logger } from 'pino';

export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Members that are always redacted, at any level of a log object. */
const SECRET_MEMBERS = ['token', 'secret', 'authorization', 'signature', 'private_key', 'seed', 'password', 'api_key'];

/**
 * Creates a logger that writes to stderr, because stdout is for results and MCP.
 *
 * @param system the daemon's name, on every line
 * @param more members of each line, such as the ids of a trace
 */
export function createLogger(system: string, level: LogLevel = 'info', more?: () => object): Logger {
  const paths = SECRET_MEMBERS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);
  return pino(
    { name: system, level, redact: { paths, censor: '[redacted]' }, ...(more && { mixin: () => ({ ...more() }) }) },
    pino.destination({ fd: 2, sync: true }),
  );
}

/** A logger without output. */
export const silentLogger: Logger = pino({ level: 'silent' });
