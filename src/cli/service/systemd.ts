/** Services of a user under systemd. */
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { replacePrivateFile } from '../../kit/identity/private-file.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type Answer, ask } from './ask.ts';
import { type ManagerOptions, noManager, type ServiceManager, type ServiceSpec } from './manager.ts';

/** Longer than the drain of `reveille up`. */
const STOP_SECONDS = 60;

/** A word of a command or a value, quoted by systemd.syntax(7) and systemd.service(5). */
function quoted(text: string): string {
  if (/[\n\0]/.test(text))
    throw new ReveilleError('invalid_request', `${JSON.stringify(text)} cannot be in a unit file`);
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%')}"`;
}

/** In a command a dollar sign begins a variable. */
const commandWord = (text: string) => quoted(text.replaceAll('$', '$$$$'));

const commandLine = (words: readonly string[]) => words.map(commandWord).join(' ');

export function unitText({ command, before, environment }: ServiceSpec): string {
  const variables = Object.entries(environment).map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}`);
  return `# Written by "reveille service install", which replaces it.
[Unit]
Description=Reveille, alarms for AI agents
Documentation=https://www.npmjs.com/package/reveille
# Restart without limit: alarms fire only while it runs.
StartLimitIntervalSec=0

[Service]
Type=exec
${before === undefined ? '' : `# For an interrupted upgrade.\nExecStartPre=-${commandLine(before)}\n`}ExecStart=${commandLine(command)}
${variables.join('\n')}
Restart=always
RestartSec=2
# Time for deliveries and turns to finish.
TimeoutStopSec=${STOP_SECONDS}
# Running agents continue, and the next start adopts them.
KillMode=process
SyslogIdentifier=reveille

[Install]
WantedBy=default.target
`;
}

const PROPERTIES = ['LoadState', 'UnitFileState', 'ActiveState', 'SubState', 'MainPID', 'NRestarts'];

/** @throws ReveilleError `unavailable` without systemd, or without a session of it for this user */
export async function systemd({ environment, isOnlyText }: ManagerOptions): Promise<ServiceManager> {
  const home = environment.HOME || homedir();
  const folder = join(environment.XDG_CONFIG_HOME || join(home, '.config'), 'systemd', 'user');
  const env = environment;
  const fileOf = (name: string) => join(folder, `${name}.service`);
  const control = (...words: string[]) =>
    ask('systemctl', ['--user', '--no-pager', ...words], { env, limitMs: 90_000 });

  const greeting = isOnlyText ? undefined : await control('show', '--property=Version');
  if (greeting?.missing) throw noManager('systemctl is not installed');
  if (greeting && greeting.status !== 0) {
    const said = greeting.stderr.trim().split('\n')[0];
    const why = `systemd has no session of this user (${said})`;
    const remedy = `log in as this user, not by su or sudo, or let it run without one: loginctl enable-linger ${userInfo().username}`;
    throw new ReveilleError('unavailable', `${why}; ${remedy}`, { retryable: false });
  }

  const must = (what: string, { status, stderr }: Answer) => {
    if (status !== 0)
      throw new ReveilleError('unavailable', `systemd did not ${what}: ${stderr.trim().split('\n').at(-1)}`);
  };
  const journal = (name: string, ...words: string[]) =>
    ['journalctl', '--user-unit', `${name}.service`, '--no-pager', '--output=cat', ...words] as const;

  return {
    title: 'systemd',
    get file() {
      return folder;
    },
    text: unitText,
    async install(spec) {
      const file = fileOf(spec.name);
      mkdirSync(dirname(file), { recursive: true });
      replacePrivateFile(file, unitText(spec));
      must('read the unit', await control('daemon-reload'));
      must('enable the unit', await control('enable', `${spec.name}.service`));
      must('start the unit', await control('restart', `${spec.name}.service`));
    },
    async uninstall(name) {
      const file = fileOf(name);
      await control('disable', '--now', `${name}.service`);
      rmSync(file, { force: true });
      await control('daemon-reload');
      await control('reset-failed', `${name}.service`);
    },
    start: async (name) => must('start the unit', await control('start', `${name}.service`)),
    stop: async (name) => must('stop the unit', await control('stop', `${name}.service`)),
    async state(name) {
      const { stdout } = await control('show', `--property=${PROPERTIES.join(',')}`, `${name}.service`);
      const found = Object.fromEntries(stdout.split('\n').map((line) => line.split('=', 2) as [string, string]));
      const states = { active: 'running', activating: 'starting', reloading: 'running', failed: 'failing' } as const;
      const bare = states[found.ActiveState as keyof typeof states] ?? 'stopped';
      const isMissing = found.LoadState !== 'loaded' || !existsSync(fileOf(name));
      const state = isMissing ? 'missing' : found.SubState === 'auto-restart' ? 'failing' : bare;
      const linger = await ask('loginctl', ['show-user', userInfo().username, '--property=Linger', '--value'], { env });
      // A user who is not logged in and does not linger is unknown there.
      const atBoot = linger.status === 0 ? linger.stdout.trim() === 'yes' : undefined;
      const pid = Number(found.MainPID) || undefined;
      return { state, enabled: found.UnitFileState === 'enabled', pid, atBoot };
    },
    async lastLines(name, count) {
      const [program, ...words] = journal(name, `--lines=${count}`, '--quiet');
      const { stdout } = await ask(program, words, { env });
      return stdout.split('\n').filter((line) => line !== '');
    },
    logCommand: (name, lines, follow) => journal(name, `--lines=${lines}`, ...(follow ? ['--follow'] : [])),
    bootRemedy: `loginctl enable-linger ${userInfo().username}`,
  };
}
