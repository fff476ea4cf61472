/** The desktop's programs, in the folder where Reveille looks for them. */
export type DesktopTool = 'Xvfb' | 'xdotool' | 'xprintidle' | 'dbus-daemon' | 'gdbus' | 'busctl';

export const pathOf = (tool: DesktopTool) => `/usr/bin/${tool}`;
