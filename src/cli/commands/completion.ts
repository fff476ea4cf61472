/** `reveille completion`: completion scripts for shells. */
import type { Command } from 'commander';
import type { CliContext } from '../context.ts';
import { choiceFlag } from '../flags/flags.ts';
import { bashCompletion } from '../outline/bash.ts';
import { fishCompletion } from '../outline/fish.ts';
import { type OutlineCommand, outlineOf } from '../outline/outline.ts';
import { zshCompletion } from '../outline/zsh.ts';

const SHELLS: Readonly<Record<string, (outline: OutlineCommand) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

/** Prints the script of a shell. */
export async function completion({ out }: CliContext, program: Command, given: string): Promise<void> {
  const shell = choiceFlag('the shell', given, Object.keys(SHELLS))!;
  const script = SHELLS[shell]!(await outlineOf(program));
  out.result({ shell, script }, script.trimEnd());
}
