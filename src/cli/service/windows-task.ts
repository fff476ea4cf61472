/** A task of the Windows Task Scheduler, by Microsoft's schema of tasks. Experimental; see `experimental.ts`. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { ReveilleError } from '../../wire/errors.ts';
import { ask } from './ask.ts';
import { lastLinesOf, xmlText } from './launchd.ts';
import { type ManagerOptions, noManager, type ServiceManager, type ServiceSpec } from './manager.ts';

/** A word for cmd.exe, within the quotes of `/c "…"`. */
function cmdWord(text: string): string {
  if (/["\r\n%]/.test(text))
    throw new ReveilleError(
      'invalid_request',
      `${JSON.stringify(text)} has a quote, a percent sign or a line end, which a task cannot carry`,
    );
  return `"${text}"`;
}

type Task = {
  description: string;
  trigger: string;
  /** The XML of its settings besides the common ones. */
  settings: string;
  /** The arguments of cmd.exe. */
  words: string;
};

/** The XML of a task that runs cmd.exe as this user, also on batteries. */
export function taskXml({ description, trigger, settings, words }: Task): string {
  return `<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>${description}</Description>
  </RegistrationInfo>
  <Triggers>
${trigger}
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>${xmlText(userInfo().username)}</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
${settings}
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>cmd.exe</Command>
      <Arguments>${xmlText(words)}</Arguments>
    </Exec>
  </Actions>
</Task>
`;
}

/** A task has no environment and stores no output, so a command of cmd.exe sets the variables and writes the log. */
export function taskText({ command, environment, logFile }: ServiceSpec): string {
  const sets = Object.entries(environment).map(([name, value]) => `set ${cmdWord(`${name}=${value}`)}`);
  const runs = `${command.map(cmdWord).join(' ')} >> ${cmdWord(logFile)} 2>&1`;
  return taskXml({
    description: 'Reveille, alarms for AI agents',
    trigger: `    <LogonTrigger>
      <Enabled>true</Enabled>
      <UserId>${xmlText(userInfo().username)}</UserId>
    </LogonTrigger>`,
    settings: `    <StartWhenAvailable>true</StartWhenAvailable>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>255</Count>
    </RestartOnFailure>`,
    words: `/d /s /c "${[...sets, runs].join(' && ')}"`,
  });
}

/** @throws ReveilleError `unavailable` without a Task Scheduler */
export async function windowsTask({ environment, place, homePath }: ManagerOptions): Promise<ServiceManager> {
  const logFile = join(homePath, 'service.log');
  const file = join(place.own, 'task.xml');
  const control = (...words: string[]) => ask('schtasks', words, { env: environment, limitMs: 60_000 });
  if ((await control('/?')).missing) throw noManager('schtasks is not installed');
  const must = async (what: string, ...words: string[]) => {
    const { status, stderr } = await control(...words);
    if (status !== 0) throw new ReveilleError('unavailable', `the Task Scheduler did not ${what}: ${stderr.trim()}`);
  };
  return {
    title: 'the Task Scheduler',
    file,
    text: taskText,
    async install(spec) {
      mkdirSync(dirname(file), { recursive: true });
      // The Task Scheduler reads UTF-16 with a byte order mark.
      writeFileSync(file, `\ufeff${taskText(spec)}`, 'utf16le');
      await must('take the task', '/Create', '/F', '/TN', spec.name, '/XML', file);
      await must('start the task', '/Run', '/TN', spec.name);
    },
    async uninstall(name) {
      await control('/End', '/TN', name);
      await control('/Delete', '/F', '/TN', name);
      rmSync(file, { force: true });
    },
    start: (name) => must('start the task', '/Run', '/TN', name),
    stop: (name) => must('end the task', '/End', '/TN', name),
    async state(name) {
      const { status, stdout } = await control('/Query', '/TN', name, '/FO', 'CSV', '/NH');
      const isRunning = /,"Running"\s*$/m.test(stdout);
      const state = status !== 0 ? 'missing' : isRunning ? 'running' : 'stopped';
      return { state, enabled: status === 0, pid: undefined, atBoot: false };
    },
    lastLines: async (_, count) => lastLinesOf(logFile, count),
    logCommand: (_, lines, follow) => [
      'powershell',
      '-NoProfile',
      '-Command',
      `Get-Content -Tail ${lines} ${follow ? '-Wait ' : ''}-LiteralPath '${logFile.replaceAll("'", "''")}'`,
    ],
    bootRemedy: 'let this user log in automatically; a task of a user starts with its login',
  };
}
