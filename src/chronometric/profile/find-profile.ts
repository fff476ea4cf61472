/** The locations of a user's profile. Pure: the environment and the disk access are parameters. */
import { isAbsolute, join, resolve } from 'node:path';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The variables with a profile's path, in order of precedence. */
const VARIABLES = ['REVEILLE_PROFILE', 'NEURODOCK_PROFILE_PATH'] as const;

type Candidate = {
  readonly path: string;
  /** The source of the path: a variable, or the home folder. */
  readonly from: string;
  /** A variable names it: then it must exist. */
  readonly named: boolean;
};

const homeOf = ({ HOME, USERPROFILE }: Environment) => HOME || USERPROFILE || undefined;

/** A path from a variable, without a shell's expansion. */
function expanded(path: string, home: string | undefined): string {
  return home !== undefined && /^~(?:[/\\]|$)/.test(path) ? join(home, path.slice(1)) : resolve(path);
}

function ownFolder(environment: Environment): { path: string; from: string }[] {
  const { XDG_CONFIG_HOME: config } = environment;
  const home = homeOf(environment);
  return [
    // A relative one is ignored (XDG Base Directory Specification).
    ...(config && isAbsolute(config) ? [{ path: config, from: '$XDG_CONFIG_HOME' }] : []),
    ...(home === undefined ? [] : [{ path: join(home, '.config'), from: '~/.config' }]),
  ].map(({ path, from }) => ({ path: join(path, 'reveille', 'profile.yaml'), from: `${from}/reveille/profile.yaml` }));
}

/** All locations; those after a variable's one do not count. */
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
  return [...named, ...ownFolder(environment).map((location) => ({ ...location, named: false })), ...foreign];
}

/**
 * The profile in use.
 *
 * @param isThere whether a path exists, of any kind
 * @returns `missing` names a variable's file that does not exist: another file would not be what the variable says
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

/** The location of a new profile: the first one that counts, and the file that it hides. */
export function newProfileLocation(
  environment: Environment,
  isThere: (path: string) => boolean,
): { readonly path: string; readonly hides?: string } | undefined {
  const locations = candidates(environment);
  const first = locations.find(({ from }) => from !== '~/.neurodock/profile.yaml');
  if (!first) return undefined;
  const hidden = locations.find(({ path }) => path !== first.path && isThere(path));
  return { path: first.path, ...(hidden && { hides: hidden.path }) };
}
