/** KDE Plasma: its screen locker knows how long the session is idle, under X. */
import type { IdleHost, IdleProbe } from './idle.ts';
import { isWayland } from './place.ts';
import { askBus } from './session-bus.ts';

/**
 * Asked by KDE's own name: several desktops are `org.freedesktop.ScreenSaver`, of which some answer in seconds and some not at all.
 * KDE answers in milliseconds.
 */
const QUESTION = {
  service: 'org.kde.screensaver',
  path: '/ScreenSaver',
  interface: 'org.freedesktop.ScreenSaver',
  method: 'GetSessionIdleTime',
};

export function kdeProbe(host: IdleHost): IdleProbe {
  const name = 'kde';
  return {
    name,
    async read(signal) {
      const idleMs = await askBus(host, QUESTION, signal);
      // KWin cannot be asked under Wayland; older versions answer 0 then, newer ones refuse.
      if (idleMs === 0 && isWayland(host)) return { unavailable: 'under Wayland it always answers 0' };
      return { idleMs, source: name };
    },
  };
}
