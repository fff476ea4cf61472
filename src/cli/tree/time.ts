/** `time …` and `profile …`: the user's time. */

import type { Command } from 'commander';
import type { ProfileInitFlags } from '../commands/profile.ts';
import type { HookFlags, TimeFlags } from '../commands/time.ts';
import { addCommand, addGroup } from './command.ts';

export function addTime(program: Command): void {
  const time = addCommand<TimeFlags>(program, {
    usage: 'time',
    summary: 'show your sessions and breaks of today',
    examples: ['reveille time', 'reveille time --week'],
    options: (command) =>
      command
        .option('--week', 'the seven days up to the day')
        .option('--date <date>', 'the day (default: today): 2026-06-15'),
    run: async (context, flags) => (await import('../commands/time.ts')).time(context, flags),
  });
  addCommand<HookFlags>(time, {
    usage: 'hook',
    summary: 'print one line about the time, for the prompt hook of an agent client',
    examples: ['reveille time hook', 'reveille time hook --format claude-code'],
    tolerant: true,
    options: (command) =>
      command
        .option('--format <format>', 'output format: text, claude-code, codex, cursor or gemini (default: text)')
        .option('--intent', 'include the intent of the open session')
        // Clients discard the prompt on some exit statuses, so that no argument here may cause one.
        .allowUnknownOption()
        .allowExcessArguments(),
    run: async (context, flags) => (await import('../commands/time.ts')).timeHook(context, flags),
  });
}

export function addProfile(program: Command): void {
  const profile = addGroup(program, 'profile', 'declare your day: end, energy zones, breaks and consent', [
    'reveille profile init',
    'reveille profile check',
  ]);
  addCommand(profile, {
    usage: 'check [file]',
    summary: 'validate a profile and print what applies today (default: the profile in use)',
    examples: ['reveille profile check', 'reveille profile check profile.yaml'],
    tolerant: true,
    run: async (context, _flags, [file]) => (await import('../commands/profile.ts')).profileCheck(context, file),
  });
  addCommand<ProfileInitFlags>(profile, {
    usage: 'init',
    summary: 'ask a few questions and write a profile; an existing one stays',
    examples: ['reveille profile init', 'reveille profile init --yes'],
    tolerant: true,
    options: (command) => command.option('--yes', 'write an empty profile with every field explained'),
    run: async (context, flags) => (await import('../commands/profile.ts')).profileInit(context, flags),
  });
}
