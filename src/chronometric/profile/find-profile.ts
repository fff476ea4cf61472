/** Where a person's profile is looked for. Pure: the environment and the look at the disk are handed in. */
import { isAbsolute, join, resolve } from 'node:path';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The variables that name a profile, the one that counts first. */
const VARIABLES = ['REVEILLE_PROFILE', 'NEURODOCK_PROFILE_PATH'] as const;

type Candidate = {
  readonly path: string;
  /** What led there: a variable, or the way from the home folder. */
  readonly from: string;
  /** A variable names it: then it has to be there. */
  readonly named: boolean;
};

const homeOf = ({ HOME, USERPROFILE }: Environment) => HOME || USERPROFILE || undefined;

/** A path as a variable gives it: no shell has seen it, where a client of ours sets it. */
function expanded(path: string, home: string | undefined): string {
  return home !== undefined && /^~(?:[/\\]|$)/.test(path) ? join(home, path.slice(1)) : resolve(path);
}

function ownFolder(environment: Environment): { path: string; from: string }[] {
  const { XDG_CONFIG_HOME: config } = environment;
  const home = homeOf(environment);
  return [
    // A relative one is to be ignored (XDG Base Directory Specification).
    ...(config && isAbsolute(config) ? [{ path: config, from: '$XDG_CONFIG_HOME' }] : []),
    ...(home === undefined ? [] : [{ path: join(home, '.config'), from: '~/.config' }]),
  ].map(({ path, from }) => ({ path: join(path, 'reveille', 'profile.yaml'), from: `${from}/reveille/profile.yaml` }));
}

/** Every place that is looked at; what follows one that a variable names does not count. */
function candidates(environment: Environment): readonly Candidate[] {
  const home = homeOf(environment);
  const named = VARIABLES.flatMap((name) => {
    const path = environment[name];
    return path ? [{ path: expanded(path, home), from: name, named: true }] : [];
  });
  const foreign =
    home === undefined
      ? []
      : [{ path: join(home, '.neurodock', 'profile.yaml'), from: '~/.neurodock/profile.yaml', named: false }];
  return [...named, ...ownFolder(environment).map((place) => ({ ...place, named: false })), ...foreign];
}

/**
 * The profile that counts.
 *
 * @param isThere whether something stands at a path, of whatever kind
 * @returns `missing` says what a variable names and is not there: falling through to another file would go against what
 *   was said
 */
export function findProfile(
  environment: Environment,
  isThere: (path: string) => boolean,
): { readonly path?: string; readonly from?: string; readonly missing?: string } {
  const found = candidates(environment).find(({ path, named }) => named || isThere(path));
  if (!found) return {};
  const { path, from, named } = found;
  if (!named || isThere(path)) return { path, from };
  return {
    ...{ path, from },
    missing: `${from} names ${path}, which does not exist; correct it, or write one with: reveille profile init`,
  };
}

/** Where a new profile goes so that it is found: the first place that counts, and what from then on no longer does. */
export function newProfilePlace(
  environment: Environment,
  isThere: (path: string) => boolean,
): { readonly path: string; readonly hides?: string } | undefined {
  const places = candidates(environment);
  const first = places.find(({ from }) => from !== '~/.neurodock/profile.yaml');
  if (!first) return undefined;
  const hidden = places.find(({ path }) => path !== first.path && isThere(path));
  return { path: first.path, ...(hidden && { hides: hidden.path }) };
}
