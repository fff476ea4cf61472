/** Every provider. To add one, write its descriptor and name it in {@link PROVIDERS}. */
import type { z } from 'zod';
import { ReveilleError } from '../../wire/errors.ts';
import { showValue } from '../../wire/validate.ts';
import { COMMAND } from './command.ts';
import type { Descriptor } from './descriptor.ts';
import { DOCKER } from './docker.ts';
import { FLY } from './fly.ts';
import { HTTP } from './http.ts';
import { PROCESS } from './process.ts';
import { HIDDEN, plain, type Shown, shownVariables } from './redaction.ts';

export const PROVIDERS = [HTTP, PROCESS, COMMAND, DOCKER, FLY] as const;

type Listed = (typeof PROVIDERS)[number];
export type ProviderName = Listed['name'];

/** How a machine is reached: the provider's name with its specification. */
export type Target = {
  [One in Listed as One['name']]: { provider: One['name']; spec: z.output<One['schema']> };
}[ProviderName];

const BY_NAME: ReadonlyMap<string, Descriptor> = new Map(
  (PROVIDERS as readonly unknown[] as readonly Descriptor[]).map((one) => [one.name, one]),
);

/** @throws ReveilleError `invalid_request` with the names of all providers when none has this name */
export function descriptorOf(name: string): Descriptor {
  const found = BY_NAME.get(name);
  if (found) return found;
  const names = [...BY_NAME.keys()].join(', ');
  throw new ReveilleError('invalid_request', `provider must be one of ${names} (got ${showValue(name)})`);
}

/** The providers whose machines have a daemon, in the order of the help. */
export const DAEMON_PROVIDERS: readonly Descriptor[] = [...BY_NAME.values()].filter(({ create }) => create);

const shownOf = (provider: string, member: string): Shown | undefined =>
  (BY_NAME.get(provider)?.shown as Record<string, Shown | undefined> | undefined)?.[member];

/**
 * The specification with {@link HIDDEN} in place of every possible secret; an unknown provider's is hidden as a whole.
 */
export function shownSpec({ provider, spec }: { provider: string; spec: object }): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(spec).map(([name, value]) => [
      name,
      value === undefined ? undefined : (shownOf(provider, name) ?? (() => HIDDEN))(value),
    ]),
  );
}

/** The specification of a deleted machine: without secret members and variables. */
export function specOfTombstone({ provider, spec }: Target): Target['spec'] {
  const kept = Object.entries(spec).filter(([name]) => {
    const shown = shownOf(provider, name);
    return shown !== undefined && shown !== shownVariables;
  });
  return Object.fromEntries(kept) as Target['spec'];
}

/**
 * Whether the value at a path of a PUT body must not be repeated in an error: the token, and each member of the
 * specification that is not shown unchanged.
 */
export function isSecretIn(body: unknown): (path: string) => boolean {
  const { provider } = (body ?? {}) as { provider?: unknown };
  return (path) => {
    const [group, member = ''] = path.split('.');
    return group === 'token' || (group === 'spec' && shownOf(String(provider), member) !== plain);
  };
}
