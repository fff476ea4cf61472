/** `profile …`: what a person declares about their day. */
import type { Command } from 'commander';
import type { ProfileInitFlags } from '../commands/profile-init.ts';
import { addCommand, addGroup } from './command.ts';

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
    run: async (context, _flags, [file]) => (await import('../commands/profile-check.ts')).profileCheck(context, file),
  });
  addCommand<ProfileInitFlags>(profile, {
    usage: 'init',
    summary: 'ask a few questions and write a profile; one that is there is left as it is',
    example: 'reveille profile init --yes',
    tolerant: true,
    options: (command) =>
      command.option('--yes', 'ask nothing: write one that declares nothing, with every field explained'),
    run: async (context, flags) => (await import('../commands/profile-init.ts')).profileInit(context, flags),
  });
}
