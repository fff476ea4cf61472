/** `service …`, `upgrade`, `status`, `stop` and `logs`. */
import type { Command } from 'commander';
import { EXPERIMENTAL_HELP } from '../service/experimental.ts';
import { addCommand, addGroup } from './command.ts';

const load = () => import('../commands/service.ts');

export function addService(program: Command): void {
  const service = addGroup(program, 'service', 'run "reveille up" in the background', [
    'reveille service install',
    'reveille service status',
  ]);
  addCommand<{ print?: boolean; boot?: boolean }>(service, {
    usage: 'install',
    summary: `install and start a service of systemd, launchd or the Task Scheduler (${EXPERIMENTAL_HELP})`,
    examples: ['reveille service install', 'reveille service install --boot'],
    options: (command) =>
      command
        .option('--boot', 'start with the computer, before a user logs in (systemd: lingering)')
        .option('--print', 'print the service file; change nothing'),
    run: async (context, flags) => (await load()).serviceInstall(context, flags),
  });
  addCommand(service, {
    usage: 'status',
    summary: 'show the state of the service, its version, the next fire and the last log line',
    examples: ['reveille service status', 'reveille service status --json'],
    run: async (context) => (await load()).serviceStatus(context),
  });
  addCommand<{ follow?: boolean; lines?: string }>(service, {
    usage: 'logs',
    summary: 'print the log of the service',
    examples: ['reveille service logs --lines 20', 'reveille service logs --follow'],
    options: (command) =>
      command.option('-f, --follow', 'continue with new lines').option('--lines <n>', 'number of lines (default: 100)'),
    run: async (context, flags) => (await load()).serviceLogs(context, flags),
  });
  addCommand(service, {
    usage: 'wake [on|off]',
    summary: `turn waking of the computer on or off for alarm set --wake-computer (${EXPERIMENTAL_HELP})`,
    examples: ['reveille service wake on', 'reveille service wake off'],
    run: async (context, _, [wanted]) => (await load()).serviceWake(context, wanted),
  });
  addCommand(service, {
    usage: 'restart',
    summary: 'restart the service; running agents continue',
    examples: ['reveille service restart', 'reveille service restart --json'],
    run: async (context) => (await load()).serviceRestart(context),
  });
  addCommand(service, {
    usage: 'uninstall',
    summary: 'remove the service and its programs; data stays',
    examples: ['reveille service uninstall', 'reveille service uninstall --json'],
    run: async (context) => (await load()).serviceUninstall(context),
  });
  addCommand(service, {
    usage: 'settle',
    summary: 'undo an interrupted upgrade; the service runs this before it starts',
    examples: ['reveille service settle'],
    hidden: true,
    run: async (context) => (await load()).serviceSettle(context),
  });
  addCommand(program, {
    usage: 'upgrade [version]',
    summary: 'install another version in the service: a version, a tag (default: latest) or an npm pack file',
    examples: ['reveille upgrade', 'reveille upgrade 0.2.0'],
    run: async (context, _, [version]) => (await load()).upgrade(context, version),
  });
}

/** `status`, `stop` and `logs`: the running installation, as a service or in a terminal. */
export function addStatus(program: Command): void {
  const commands = () => import('../commands/status.ts');
  addCommand(program, {
    usage: 'status',
    summary: 'show what runs, the next fire and waiting approvals',
    examples: ['reveille status', 'reveille status --json'],
    run: async (context) => (await commands()).status(context),
  });
  addCommand(program, {
    usage: 'stop',
    summary: 'stop "reveille up" or the service; alarms are kept',
    examples: ['reveille stop', 'reveille stop --json'],
    run: async (context) => (await commands()).stop(context),
  });
  addCommand<{ follow?: boolean; lines?: string }>(program, {
    usage: 'logs',
    summary: 'print the log of the service',
    examples: ['reveille logs --lines 20', 'reveille logs --follow'],
    options: (command) =>
      command.option('-f, --follow', 'continue with new lines').option('--lines <n>', 'number of lines (default: 100)'),
    run: async (context, flags) => (await commands()).logs(context, flags),
  });
}
