/** Provider `http`: an always-on daemon at an address of the operator. */
import { z } from 'zod';
import { ReveilleError } from '../../wire/errors.ts';
import { type Descriptor, healthPath, healthPathFact, healthPathFlag, text } from './descriptor.ts';
import type { HealthProbe } from './health.ts';
import { machineOf, type Provider, type ProviderMachine } from './provider.ts';
import { shownAddress, shownPath } from './redaction.ts';

/** The base address of a daemon. Its routes are below it, so it has no query. Secrets belong in `token`. */
const baseUrl = z
  // Without `abort` the next check would run on text that is not an address.
  .url({ protocol: /^https?$/, error: 'must be an http:// or https:// address', abort: true })
  .refine((text) => {
    const url = new URL(text);
    return url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  }, 'must be an address without user, password, query or fragment; give a password as token');

export const httpSpecSchema = z.strictObject({ url: baseUrl, health_path: healthPath });

export const HTTP: Descriptor<'http', typeof httpSpecSchema> = {
  name: 'http',
  about: 'a daemon that is always on',
  schema: httpSpecSchema,
  shown: { url: (url) => shownAddress(String(url)), health_path: shownPath },
  identity: ['url'],
  flags: [
    {
      usage: '--url <url>',
      about: 'where the daemon listens',
      member: 'url',
      kind: 'text',
      needed: 'the address of the daemon',
    },
    healthPathFlag,
  ],
  facts: (spec) => [['url', text(spec.url)], healthPathFact(spec)],
  create: ({ probe }) => Promise.resolve(createHttpProvider(probe)),
};

const specOf = (machine: ProviderMachine) => machineOf<z.output<typeof httpSpecSchema>>('http', machine).spec;

/**
 * A start is a health check. A refused connection fails at once: only the operator can start the daemon, and the
 * alarm's retries wait longer than a wake can. A silent daemon is checked again.
 */
export function createHttpProvider(probe: HealthProbe): Provider {
  return {
    name: 'http',
    sleeps: false,
    fingerprint: (machine) => JSON.stringify(specOf(machine)),
    async start(machine, signal) {
      const { url, health_path } = specOf(machine);
      for (;;) {
        const health = await probe.check({ url }, health_path, signal);
        signal.throwIfAborted();
        if (health.healthy) return { url, gone: new AbortController().signal, cold: false };
        if (health.isSilent) continue;
        throw new ReveilleError('unavailable', `the daemon at ${url} cannot be reached: ${health.why}`);
      }
    },
    survivors: () => [],
    adopt: () => Promise.resolve(undefined),
    stop: () => Promise.resolve(),
    close: () => {},
  };
}
