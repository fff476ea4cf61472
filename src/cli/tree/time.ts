/** `time …` and `profile …`: the person's time. */

import type { Command } from 'commander';
import type { ProfileInitFlags } from '../commands/profile.ts';
import type { HookFlags, TimeFlags } from '../commands/time.ts';
import { addCommand, addGroup } from './command.ts';

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
        // Programs take some exit statuses as an order to throw the prompt away: nothing in a line like this may lead
        // to one.
        .allowUnknownOption()
        .allowExcessArguments(),
    run: async (context, flags) => (await import('../commands/time.ts')).timeHook(context, flags),
  });
}

export function addProfile(program: Command): void {
  const profile = addGroup(
    program,
    'profile',
    'what you declare about your day: its end, its zones, its breaks, your consent',
  );
  addCommand(profile, {
    usage: 'check [file]',
    summary: 'say what a profile means, what counts today, and what is wrong with it (default: the one that is found)',
    example: 'reveille profile check',
    tolerant: true,
    run: async (context, _flags, [file]) => (await import('../commands/profile.ts')).profileCheck(context, file),
  });
  addCommand<ProfileInitFlags>(profile, {
    usage: 'init',
    summary: 'ask a few questions and write a profile; one that is there is left as it is',
    example: 'reveille profile init --yes',
    tolerant: true,
    options: (command) =>
      command.option('--yes', 'ask nothing: write one that declares nothing, with every field explained'),
    run: async (context, flags) => (await import('../commands/profile.ts')).profileInit(context, flags),
  });
}
