/** `time` and `time hook`: what chronometric has recorded, for the person and for their agents. */
import type { Command } from 'commander';
import type { TimeFlags } from '../commands/time.ts';
import type { HookFlags } from '../commands/time-hook.ts';
import { addCommand } from './command.ts';

export function addTime(program: Command): void {
  const time = addCommand<TimeFlags>(program, {
    usage: 'time',
    summary: 'show what you meant to do today, what came of it, and when you were away',
    example: 'reveille time --week',
    options: (command) =>
      command
        .option('--week', 'the seven days up to that day')
        .option('--date <date>', 'another day than today: 2026-06-15'),
    run: async (context, flags) => (await import('../commands/time.ts')).time(context, flags),
  });
  addCommand<HookFlags>(time, {
    usage: 'hook',
    summary: 'print one line about the time, for the prompt hook of an agent CLI',
    example: 'reveille time hook --format claude-code',
    tolerant: true,
    options: (command) =>
      command
        .option(
          '--format <format>',
          'text, claude-code, codex, cursor or gemini: as that program takes it (default: text)',
        )
        .option('--intent', 'say what the open session is for, too')
        // Programs take some exit statuses as an order to throw the prompt away: nothing in a line like this may lead to one.
        .allowUnknownOption()
        .allowExcessArguments(),
    run: async (context, flags) => (await import('../commands/time-hook.ts')).timeHook(context, flags),
  });
}
