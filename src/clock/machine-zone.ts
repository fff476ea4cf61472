/** The machine's own time zone. */

/** @returns an IANA name, or `undefined` where the machine names none that is known; nothing is put in its place */
export function machineZone(): string | undefined {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  // What ICU calls a zone that it could not make out.
  return timeZone === undefined || timeZone === 'Etc/Unknown' ? undefined : timeZone;
}
