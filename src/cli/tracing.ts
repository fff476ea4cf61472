/** Traces of this process, if a setting enables them. */
import type { Logger } from '../kit/log/log.ts';
import { ReveilleError } from '../wire/errors.ts';
import { withoutTrailing } from '../wire/text.ts';
import type { CliContext } from './context.ts';

/**
 * Starts to record traces if `REVEILLE_OTLP_ENDPOINT` is set. If the exporter's packages are not installed, the process
 * starts without traces, and the log names the command that installs them.
 *
 * @param service the name of this process in traces
 * @returns exports the rest and stops
 * @throws ReveilleError `invalid_request` for an invalid address
 */
export async function startOwnTraces(
  { settings, clock }: Pick<CliContext, 'settings' | 'clock'>,
  service: string,
  log: Logger,
): Promise<() => Promise<void>> {
  const { REVEILLE_OTLP_ENDPOINT: given } = settings;
  if (given === undefined) return async () => {};
  const url = URL.parse(given);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search)
    throw new ReveilleError(
      'invalid_request',
      `REVEILLE_OTLP_ENDPOINT must be an http:// or https:// address without credentials, such as http://127.0.0.1:4318`,
    );
  const { startOtlp } = await import('../kit/trace/otlp.ts');
  try {
    return await startOtlp({ endpoint: withoutTrailing(url.href, '/'), service, clock, log });
  } catch (error) {
    if (!(error instanceof ReveilleError)) throw error;
    log.warn(error.message);
    return async () => {};
  }
}
