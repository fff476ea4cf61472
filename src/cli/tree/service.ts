/** `service …` and `upgrade`. */
import type { Command } from 'commander';
import { addCommand, addGroup } from './command.ts';

const load = () => import('../commands/service.ts');

export function addService(program: Command): void {
  const service = addGroup(program, 'service', '"reveille up" without a terminal: it starts by itself, and again');
  addCommand<{ print?: boolean; boot?: boolean }>(service, {
    usage: 'install',
    summary: 'make this version a service of systemd, launchd or the Task Scheduler, and start it',
    example: 'reveille service install',
    options: (command) =>
      command
        .option('--boot', 'have it run from the start of the computer, before anybody logs in (systemd: lingering)')
        .option('--print', 'print the file that it would write, and change nothing'),
    run: async (context, flags) => (await load()).serviceInstall(context, flags),
  });
  addCommand(service, {
    usage: 'status',
    summary: 'whether it runs and starts by itself, its version, what rings next, and the last line of its log',
    example: 'reveille service status',
    run: async (context) => (await load()).serviceStatus(context),
  });
  addCommand<{ follow?: boolean; lines?: string }>(service, {
    usage: 'logs',
    summary: 'what it said',
    example: 'reveille service logs -f',
    options: (command) =>
      command.option('-f, --follow', 'go on with what comes').option('--lines <n>', 'so many lines (default: 100)'),
    run: async (context, flags) => (await load()).serviceLogs(context, flags),
  });
  addCommand(service, {
    usage: 'wake [on|off]',
    summary: 'wake the computer from its sleep for alarms that ask for it (alarm set --wake-computer), or no more',
    example: 'reveille service wake on',
    run: async (context, _, [wanted]) => (await load()).serviceWake(context, wanted),
  });
  addCommand(service, {
    usage: 'restart',
    summary: 'end it and start it again; agents that are awake run on',
    example: 'reveille service restart',
    run: async (context) => (await load()).serviceRestart(context),
  });
  addCommand(service, {
    usage: 'uninstall',
    summary: 'take the service away, with its programs; the data stays, and where it is said',
    example: 'reveille service uninstall',
    run: async (context) => (await load()).serviceUninstall(context),
  });
  addCommand(service, {
    usage: 'settle',
    summary: 'give up an upgrade that was cut off; the service runs this before it starts',
    example: 'reveille service settle',
    hidden: true,
    run: async (context) => (await load()).serviceSettle(context),
  });
  addCommand(program, {
    usage: 'upgrade [version]',
    summary: 'have the service run another version: a version, a tag (default: latest) or a file of npm pack',
    example: 'reveille upgrade 0.2.0',
    run: async (context, _, [version]) => (await load()).upgrade(context, version),
  });
}
