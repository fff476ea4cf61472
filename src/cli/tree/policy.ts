/** `policy …`: the rules of the executor. */
import type { Command } from 'commander';
import type { PolicyExplainFlags } from '../commands/policy-explain.ts';
import { addCommand, addGroup } from './command.ts';

const several = (value: string, before: readonly string[] = []) => [...before, value];

export function addPolicy(program: Command): void {
  const policy = addGroup(program, 'policy', 'the rules by which the executor allows, asks and denies');
  addCommand(policy, {
    usage: 'check [file]',
    summary: 'say what a policy means and what is wrong with it (default: the file that EXECUTOR_POLICY names)',
    example: 'reveille policy check policy.yaml',
    run: async (context, _flags, [file]) => (await import('../commands/policy-check.ts')).policyCheck(context, file),
  });
  addCommand<PolicyExplainFlags>(policy, {
    usage: 'explain [file]',
    summary: 'say what a policy makes of a call, and why (default: the file that EXECUTOR_POLICY names)',
    example: `reveille policy explain policy.yaml --tool ledger/transfer --args '{"to":"bob","amount":"25.00","currency":"EUR"}'`,
    options: (command) =>
      command
        .option('--tool <alias/tool>', 'the tool that is called')
        .option('--args <json>', 'its arguments (default: {})')
        .option('--user <label>', 'whose call it is (default: that of this installation)')
        .option('--unattended', 'an alarm began the turn and nobody is there')
        .option('--at <instant>', 'when it is made (default: now)')
        .option(
          '--spent <amount>',
          'what was spent with this tool just before, such as "10 EUR"; may be repeated',
          several,
        )
        .option('--amount <amount>', 'what is at stake (default: what the manifest says of the arguments)')
        .option('--surface <class>', 'natural or escalate (default: what the manifest says)')
        .option('--manifest <file>', 'the manifest of the executor (default: that of this installation)'),
    run: async (context, flags, [file]) =>
      (await import('../commands/policy-explain.ts')).policyExplain(context, flags, file),
  });
}
