/** `agent …`: identities and the keys that speak for them. */
import type { Command } from 'commander';
import type { KeyFlags } from '../commands/agent.ts';
import { addCommand, addGroup } from './command.ts';

const load = () => import('../commands/agent.ts');

export function addAgent(program: Command): void {
  const agent = addGroup(program, 'agent', 'show who this agent is, and manage the keys that chronosd accepts');
  addCommand(agent, {
    usage: 'whoami',
    summary: "show this agent's identity; it is made when there is none",
    example: 'reveille agent whoami',
    run: async (context) => (await load()).agentWhoami(context),
  });
  addCommand<KeyFlags>(agent, {
    usage: 'enroll',
    summary: 'accept a key for a label (needs CHRONOS_ADMIN_TOKEN)',
    example: 'reveille agent enroll --label alice --key-file ~/alice.key',
    options: (command) =>
      command
        .option('--label <label>', "the label (default: this agent's own)")
        .option('--public-key <hex>', 'the key, as "agent whoami" prints it')
        .option('--key-file <file>', "a key file to take the public key from (default: this agent's own)"),
    run: async (context, flags) => (await load()).agentEnroll(context, flags),
  });
  addCommand(agent, {
    usage: 'list',
    summary: 'list the keys that chronosd knows (needs CHRONOS_ADMIN_TOKEN)',
    example: 'reveille agent list',
    run: async (context) => (await load()).agentList(context),
  });
  addCommand<KeyFlags>(agent, {
    usage: 'revoke',
    summary: 'stop accepting one key of a label, or all of them (needs CHRONOS_ADMIN_TOKEN)',
    example: 'reveille agent revoke --label alice',
    options: (command) =>
      command
        .option('--label <label>', 'the label')
        .option('--public-key <hex>', 'only this key, or the one that begins so (default: all of the label)'),
    run: async (context, flags) => (await load()).agentRevoke(context, flags),
  });
  agent.addHelpText('after', '\nExample:\n  $ reveille agent whoami');
}
