import { correctionsOf } from '../zone-corrections.ts';

/** Whether the database of `Intl` has the current clock of a zone. */
export const isOfIntl = (zone: string): boolean => correctionsOf(zone, process.versions.tz).length === 0;

export const zonesOfIntl = (): string[] => Intl.supportedValuesOf('timeZone').filter(isOfIntl);
