/** The machine's own time zone. */

let zone: { readonly name: string | undefined } | undefined;

function read(): { name: string | undefined } {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  // What ICU calls a zone that it could not make out.
  return { name: timeZone === 'Etc/Unknown' ? undefined : timeZone };
}

/**
 * Asked once: a process does not notice when its machine moves to another zone, and asking is dear.
 *
 * @returns an IANA name, or `undefined` where the machine names none that is known; nothing is put in its place
 */
export function machineZone(): string | undefined {
  zone ??= read();
  return zone.name;
}
