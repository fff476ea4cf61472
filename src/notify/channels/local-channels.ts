/** Channels on this computer: a program, and the desktop of its user. */
import { existsSync } from 'node:fs';
import { z } from 'zod';
import { runNotice } from '../../kit/outbox/notice-program.ts';
import { busAddress, findProgram } from '../../kit/process/session-bus.ts';
import type { Settings } from '../../wire/settings.ts';
import { type ChannelKind, cut, type Message } from './channel.ts';
import { webhookBody } from './http-channels.ts';

const commandSpec = z.strictObject({ command: z.tuple([z.string().min(1)], z.string()) });

/** A program, without a shell; the notification is on its standard input, with the body of webhooks. */
export const command: ChannelKind<z.output<typeof commandSpec>> = {
  spec: commandSpec,
  place: ({ command: [program] }) => program,
  refusal: () => undefined,
  tell: (spec, message, { variables, clock, signal }) =>
    runNotice(spec.command, webhookBody(message), { variables, clock, signal }),
};

const TITLE_BYTES = 160;
const TEXT_BYTES = 600;
const SHOWN_MS = 15_000;

const desktopSpec = z.strictObject({});

/** A program that shows a notification on this desktop, with its environment. */
export type DesktopCommand = {
  readonly command: readonly [string, ...string[]];
  readonly more: Readonly<Record<string, string>>;
};

/** GVariant text format: it includes JSON's escapes. */
const gvariant = (text: string) => JSON.stringify(text);
/** Servers may interpret markup in the text (Desktop Notifications Specification, "Markup"). */
const withoutMarkup = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

function linuxCommand(title: string, text: string, urgent: boolean, variables: Settings): DesktopCommand {
  const place = { environment: variables, uid: process.getuid?.(), exists: existsSync };
  const address = busAddress(place);
  const body = withoutMarkup(text);
  const gdbus = findProgram(place, 'gdbus');
  if (gdbus !== undefined) {
    const name = 'org.freedesktop.Notifications';
    const target = ['--dest', name, '--object-path', '/org/freedesktop/Notifications', '--method', `${name}.Notify`];
    const hints = `{"urgency": <byte ${urgent ? 2 : 1}>}`;
    const values = ['"Reveille"', 'uint32 0', '""', gvariant(title), gvariant(body), '@as []', hints];
    const command = [gdbus, 'call', '--address', address, ...target, ...values, `int32 ${SHOWN_MS}`] as const;
    return { command: command as unknown as [string, ...string[]], more: {} };
  }
  const notifySend = findProgram(place, 'notify-send');
  if (notifySend === undefined) throw new Error('neither gdbus nor notify-send is installed');
  const options = ['--app-name=Reveille', `--urgency=${urgent ? 'critical' : 'normal'}`, '--'];
  return { command: [notifySend, ...options, title, body], more: { DBUS_SESSION_BUS_ADDRESS: address } };
}

/** The text is an argument of the script, never part of it. */
const OSASCRIPT = [
  ...[
    '-e',
    'on run argv',
    '-e',
    'display notification (item 2 of argv) with title "Reveille" subtitle (item 1 of argv)',
  ],
  ...['-e', 'end run', '--'],
];

/** The text is in environment variables, never part of the script. */
const TOAST = `
[Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime] | Out-Null
$xml = [Windows.UI.Notifications.ToastNotificationManager]::GetTemplateContent('ToastText02')
$lines = $xml.GetElementsByTagName('text')
$lines.Item(0).AppendChild($xml.CreateTextNode($env:REVEILLE_TITLE)) | Out-Null
$lines.Item(1).AppendChild($xml.CreateTextNode($env:REVEILLE_TEXT)) | Out-Null
$toast = [Windows.UI.Notifications.ToastNotification]::new($xml)
$app = '{1AC14E77-02E7-4E5D-B744-2EB1AE5198B7}\\WindowsPowerShell\\v1.0\\powershell.exe'
[Windows.UI.Notifications.ToastNotificationManager]::CreateToastNotifier($app).Show($toast)`;

/**
 * The desktop notification program of a platform.
 *
 * @throws without a session, or without a program for it
 */
export function desktopCommand(message: Message, platform: NodeJS.Platform, variables: Settings): DesktopCommand {
  const title = cut(message.title, TITLE_BYTES);
  const text = cut(message.text, TEXT_BYTES);
  const urgent = message.kinds.includes('approvals');
  if (platform === 'darwin') return { command: ['/usr/bin/osascript', ...OSASCRIPT, title, text], more: {} };
  if (platform !== 'win32') return linuxCommand(title, text, urgent, variables);
  const script = Buffer.from(TOAST, 'utf16le').toString('base64');
  const root = variables.SystemRoot ?? variables.SYSTEMROOT ?? 'C:\\Windows';
  const powershell = `${root}\\System32\\WindowsPowerShell\\v1.0\\powershell.exe`;
  const options = ['-NoProfile', '-NonInteractive', '-EncodedCommand', script];
  return { command: [powershell, ...options], more: { REVEILLE_TITLE: title, REVEILLE_TEXT: text } };
}

/** Why there is no desktop; `undefined` when there is one. */
export function noDesktop(platform: NodeJS.Platform, variables: Settings): string | undefined {
  if (variables.SSH_CONNECTION) return 'this is an ssh session, not a desktop session';
  const hasDisplay = Boolean(variables.DISPLAY || variables.WAYLAND_DISPLAY);
  // A server has a session bus as well, without a notification service.
  if (platform !== 'darwin' && platform !== 'win32' && !hasDisplay) return 'neither DISPLAY nor WAYLAND_DISPLAY is set';
  const nothing: Message = { id: '', kinds: [], at: 0, title: '', text: '', about: {}, links: [] };
  try {
    desktopCommand(nothing, platform, variables);
    return undefined;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
}

/** The desktop, with the platform's own program. After a crash a notification may be shown twice. */
export const desktop: ChannelKind<z.output<typeof desktopSpec>> = {
  spec: desktopSpec,
  place: () => 'this computer',
  refusal: () => undefined,
  tell(_, message, { variables, clock, signal }) {
    try {
      const shown = desktopCommand(message, process.platform, variables);
      return runNotice(shown.command, '', { variables, more: shown.more, clock, signal });
    } catch (thrown) {
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      return Promise.resolve({ result: 'later', slow: true, why });
    }
  },
};
