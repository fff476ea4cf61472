/** Provider `http`: a daemon that is always on, at an address that the operator gave. */
import { ReveilleError } from '../../wire/errors.ts';
import type { HttpMachine, Machine } from '../machines/machine.ts';
import type { HealthProbe } from './health.ts';
import type { Provider } from './provider.ts';

function httpMachine(machine: Machine): HttpMachine {
  if (machine.provider === 'http') return machine;
  throw new ReveilleError('internal', `a machine of provider ${machine.provider} came to provider http`);
}

/**
 * Starting is a look at the daemon's health. A daemon that refuses fails at once: whoever runs it brings it back, and the alarm's
 * retry ladder knows better when to come again than a wake that holds on. One that says nothing is looked at again.
 */
export function createHttpProvider(probe: HealthProbe): Provider {
  return {
    name: 'http',
    sleeps: false,
    fingerprint: (machine) => JSON.stringify(httpMachine(machine).spec),
    async start(machine, signal) {
      const { url, health_path } = httpMachine(machine).spec;
      for (;;) {
        const health = await probe.look({ url }, health_path, signal);
        signal.throwIfAborted();
        if (health.healthy) return { url, gone: new AbortController().signal, cold: false };
        if (health.silent) continue;
        throw new ReveilleError('unavailable', `the daemon at ${url} cannot be reached: ${health.why}`);
      }
    },
    survivors: () => [],
    adopt: () => Promise.resolve(undefined),
    stop: () => Promise.resolve(),
    close: () => {},
  };
}
