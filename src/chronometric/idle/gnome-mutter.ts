/** GNOME: Mutter counts the milliseconds itself, under Wayland and X alike. */
import type { IdleHost, IdleProbe } from './idle.ts';
import { askBus } from './session-bus.ts';

const QUESTION = {
  service: 'org.gnome.Mutter.IdleMonitor',
  path: '/org/gnome/Mutter/IdleMonitor/Core',
  interface: 'org.gnome.Mutter.IdleMonitor',
  method: 'GetIdletime',
};

export function gnomeMutterProbe(host: IdleHost): IdleProbe {
  const name = 'gnome-mutter';
  return { name, read: async (signal) => ({ idleMs: await askBus(host, QUESTION, signal), source: name }) };
}
