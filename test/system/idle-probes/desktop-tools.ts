/** Programs of a desktop that npm does not bring. Where one is missing a test says so, and in CI it fails. */
import { existsSync } from 'node:fs';
import type { TestContext } from 'node:test';

/** What to install, by program (Debian and its children). */
const PACKAGE_OF = {
  Xvfb: 'xvfb',
  xdotool: 'xdotool',
  xprintidle: 'xprintidle',
  'dbus-daemon': 'dbus',
  gdbus: 'libglib2.0-bin',
  busctl: 'systemd',
} as const;
export type DesktopTool = keyof typeof PACKAGE_OF;

export const pathOf = (tool: DesktopTool) => `/usr/bin/${tool}`;

/**
 * @param ci whether a missing program is a failure
 * @returns whether all are there; a test goes home without them
 * @throws in CI, when one is not
 */
export function hasTools(
  t: TestContext,
  tools: readonly DesktopTool[],
  ci = Boolean(process.env.CI),
  exists: (path: string) => boolean = existsSync,
): boolean {
  const missing = tools.filter((tool) => !exists(pathOf(tool)));
  if (missing.length === 0) return true;
  const packages = missing.map((tool) => PACKAGE_OF[tool]).join(' ');
  const message = `NOT TESTED: ${missing.join(', ')} not installed (apt-get install -y --no-install-recommends ${packages})`;
  if (ci) throw new Error(message);
  t.diagnostic(message);
  console.error(`${t.name}: ${message}`);
  return false;
}
