/** Platform code that has never run on its platform: it follows the manuals and is checked against their formats. */

/** The word for it in help, documentation and the doctor. */
export const EXPERIMENTAL = 'experimental';

/** The service managers whose support is experimental. */
export const EXPERIMENTAL_MANAGERS: Readonly<Partial<Record<NodeJS.Platform, string>>> = {
  darwin: 'launchd',
  win32: 'the Task Scheduler',
};

/** Whether services, wake-ups of the computer and keeping it awake are experimental here. */
export const isExperimental = (platform: NodeJS.Platform = process.platform): boolean =>
  platform in EXPERIMENTAL_MANAGERS;

/** For the help of commands that use this code. */
export const EXPERIMENTAL_HELP = `${EXPERIMENTAL} on macOS and Windows`;

/** A name or sentence, marked where the code behind it is experimental. */
export const marked = (text: string, platform?: NodeJS.Platform): string =>
  isExperimental(platform) ? `${text} (${EXPERIMENTAL})` : text;
