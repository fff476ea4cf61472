/** The machine's own time zone. */
import { realpathSync } from 'node:fs';
import { isZone } from './zone.ts';

let cached: { readonly name: string | undefined } | undefined;

/** Read once: a process does not notice when its machine moves to another zone, and reading it is slow. */
function zoneOfSystem(): string | undefined {
  cached ??= { name: new Intl.DateTimeFormat().resolvedOptions().timeZone };
  // ICU's name for an unknown zone.
  return cached.name === 'Etc/Unknown' ? undefined : cached.name;
}

/** `/etc/localtime` is usually a link into the zoneinfo folder. */
function pathOfLink(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/**
 * The zone of `TZ`, which has a zone's name or file. Rules such as `CET-1CEST,M3.5.0,M10.5.0/3` are refused, because
 * ICU reads them as UTC.
 */
function zoneOfVariable(value: string): string | undefined {
  const named = value.replace(/^:/, '');
  const path = named.startsWith('/') ? pathOfLink(named) : named;
  const name = path.replace(/^.*\/zoneinfo\//, '').replace(/^posix\//, '');
  return isZone(name) ? name : undefined;
}

/**
 * @param value the variable `TZ`; without it, the system's zone is read
 * @returns an IANA name, or `undefined` without a known zone; there is no default
 */
export function machineZone(value: string | undefined): string | undefined {
  return value ? zoneOfVariable(value) : zoneOfSystem();
}
