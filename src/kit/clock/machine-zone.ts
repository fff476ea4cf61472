/** The machine's own time zone. */
import { realpathSync } from 'node:fs';
import { isZone } from './zone.ts';

let asked: { readonly name: string | undefined } | undefined;

/** Asked once: a process does not notice when its machine moves to another zone, and asking is dear. */
function zoneOfSystem(): string | undefined {
  asked ??= { name: new Intl.DateTimeFormat().resolvedOptions().timeZone };
  // What ICU calls a zone that it could not make out.
  return asked.name === 'Etc/Unknown' ? undefined : asked.name;
}

/** `/etc/localtime` is mostly a link into the folder of zones. */
function pathOfLink(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/**
 * What `TZ` says: a zone, or the file of one. Rules such as `CET-1CEST,M3.5.0,M10.5.0/3` are none, though ICU takes
 * them for UTC.
 */
function zoneOfVariable(told: string): string | undefined {
  const named = told.replace(/^:/, '');
  const path = named.startsWith('/') ? pathOfLink(named) : named;
  const name = path.replace(/^.*\/zoneinfo\//, '').replace(/^posix\//, '');
  return isZone(name) ? name : undefined;
}

/**
 * @param told the variable `TZ`; without it the system is asked
 * @returns an IANA name, or `undefined` where none is named that is known; nothing is put in its place
 */
export function machineZone(told: string | undefined): string | undefined {
  return told ? zoneOfVariable(told) : zoneOfSystem();
}
