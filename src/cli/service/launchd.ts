/** User agents of launchd, by launchd.plist(5) and launchctl(1). Experimental; see `experimental.ts`. */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { replacePrivateFile } from '../../kit/identity/private-file.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { ask } from './ask.ts';
import { type ManagerOptions, noManager, type ServiceManager, type ServiceSpec } from './manager.ts';

const STOP_SECONDS = 60;

/** Text in an XML element. @throws ReveilleError for characters that XML does not allow */
export function xmlText(text: string): string {
  if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/.test(text))
    throw new ReveilleError('invalid_request', `${JSON.stringify(text)} cannot be in an XML file`);
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

const labelOf = (name: string) => `io.reveille.${name}`;
const strings = (values: readonly string[]) =>
  values.map((value) => `    <string>${xmlText(value)}</string>`).join('\n');

export function plistText({ name, command, environment, logFile }: ServiceSpec): string {
  const variables = Object.entries(environment).map(
    ([key, value]) => `    <key>${xmlText(key)}</key>\n    <string>${xmlText(value)}</string>`,
  );
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${labelOf(name)}</string>
  <key>ProgramArguments</key>
  <array>
${strings(command)}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
${variables.join('\n')}
  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <true/>
  <key>ThrottleInterval</key>
  <integer>2</integer>
  <key>ExitTimeOut</key>
  <integer>${STOP_SECONDS}</integer>
  <key>AbandonProcessGroup</key>
  <true/>
  <key>ProcessType</key>
  <string>Interactive</string>
  <key>StandardOutPath</key>
  <string>${xmlText(logFile)}</string>
  <key>StandardErrorPath</key>
  <string>${xmlText(logFile)}</string>
</dict>
</plist>
`;
}

/** The last lines of a file that may not exist. */
export function lastLinesOf(file: string, count: number): string[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .slice(-count);
}

/** @throws ReveilleError `unavailable` without launchd */
export async function launchd({ environment, homePath, isOnlyText }: ManagerOptions): Promise<ServiceManager> {
  const folder = join(environment.HOME || homedir(), 'Library', 'LaunchAgents');
  const domain = `gui/${userInfo().uid}`;
  const logFile = join(homePath, 'service.log');
  const control = (...words: string[]) => ask('launchctl', words, { env: environment, limitMs: 90_000 });
  const fileOf = (name: string) => join(folder, `${labelOf(name)}.plist`);
  const target = (name: string) => `${domain}/${labelOf(name)}`;
  if (!isOnlyText && (await control('version')).missing) throw noManager('launchctl is not installed');
  const must = async (what: string, ...words: string[]) => {
    const { status, stderr } = await control(...words);
    if (status !== 0) throw new ReveilleError('unavailable', `launchd did not ${what}: ${stderr.trim()}`);
  };
  return {
    title: 'launchd',
    file: folder,
    text: plistText,
    async install(spec) {
      const file = fileOf(spec.name);
      mkdirSync(dirname(file), { recursive: true });
      replacePrivateFile(file, plistText(spec));
      await control('bootout', target(spec.name));
      await control('enable', target(spec.name));
      await must('load the agent', 'bootstrap', domain, file);
    },
    async uninstall(name) {
      await control('bootout', target(name));
      rmSync(fileOf(name), { force: true });
    },
    start: (name) => must('load the agent', 'bootstrap', domain, fileOf(name)),
    stop: (name) => must('stop the agent', 'bootout', target(name)),
    async state(name) {
      const { status, stdout } = await control('print', target(name));
      const isThere = existsSync(fileOf(name));
      const pid = Number(/^[ \t]*pid = (\d+)/m.exec(stdout)?.[1]) || undefined;
      const loaded = status === 0;
      const state = !isThere ? 'missing' : pid ? 'running' : loaded ? 'failing' : 'stopped';
      return { state, enabled: isThere, pid, atBoot: false };
    },
    lastLines: async (_, count) => lastLinesOf(logFile, count),
    logCommand: (_, lines, follow) => ['tail', '-n', String(lines), ...(follow ? ['-F'] : []), logFile],
    bootRemedy: 'let this user log in automatically (System Settings, Users & Groups); an agent starts with its login',
  };
}
