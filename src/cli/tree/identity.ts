/** `agent …`, `approver …`, `submitter …` and `user …`: who may ask, who may approve, and who may come in. */
import type { Command } from 'commander';
import type { EnrollFlags, KeyFlags } from '../commands/agent.ts';
import type { ApproverFlags } from '../commands/approver.ts';
import type { CredentialFlags } from '../commands/user.ts';
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
  addCommand<EnrollFlags>(agent, {
    usage: 'enroll',
    summary: 'accept a key for a label, or the keys of a file (needs CHRONOS_ADMIN_TOKEN)',
    example: 'reveille agent enroll --label alice --key-file ~/alice.key',
    options: (command) =>
      command
        .option('--label <label>', "the label (default: this agent's own)")
        .option('--public-key <hex>', 'the key, as "agent whoami" prints it')
        .option('--key-file <file>', "a key file to take the public key from (default: this agent's own)")
        .option(
          '--from <file>',
          'many agents: a JSON object with label and public_key on each line; - reads standard input',
        )
        .option(
          '--output <folder>',
          "with --from: write each agent's configuration, and make the keys that the file lacks",
        ),
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

type UserFlags = { user?: string };

const approver = () => import('../commands/approver.ts');
const submitter = () => import('../commands/submitter.ts');

const ofUser = (command: Command) =>
  command.option('--user <label>', "whose intents it is about (default: this machine's own user)");
const anybody = (command: Command) => command.option('--user <label>', 'only of this user (default: of everybody)');

export function addApprover(program: Command): void {
  const group = addGroup(program, 'approver', 'the key with which you answer, and whose keys an executor takes');
  addCommand<ApproverFlags>(group, {
    usage: 'enroll',
    summary: 'make a key of yours and enrol it, or vouch for that of another machine (needs EXECUTOR_ADMIN_TOKEN)',
    example: 'reveille approver enroll',
    options: (command) =>
      ofUser(command)
        .option('--name <words>', 'what the key is called (default: you at this computer)')
        .option('--request-file <file>', 'add your word to the request of another key; - reads standard input'),
    run: async (context, flags) => (await approver()).approverEnroll(context, flags),
  });
  addCommand<UserFlags>(group, {
    usage: 'list',
    summary: 'list the keys that may answer, with those that were revoked (needs EXECUTOR_ADMIN_TOKEN)',
    example: 'reveille approver list',
    options: anybody,
    run: async (context, flags) => (await approver()).approverList(context, flags),
  });
  addCommand<UserFlags>(group, {
    usage: 'revoke <key>',
    summary: 'end a key, on the word of one that stands (needs EXECUTOR_ADMIN_TOKEN)',
    example: 'reveille approver revoke 6b3f9a10',
    options: ofUser,
    run: async (context, flags, [key]) => (await approver()).approverRevoke(context, flags, key!),
  });
  addCommand(group, {
    usage: 'show',
    summary: 'show the public key of yours, and where it is kept',
    example: 'reveille approver show',
    run: async (context) => (await approver()).approverShow(context),
  });
  addCommand(group, {
    usage: 'seal',
    summary: 'put your key under a passphrase, which is asked for at every answer',
    example: 'reveille approver seal',
    run: async (context) => (await approver()).approverSeal(context),
  });
  addCommand(group, {
    usage: 'unseal',
    summary: 'take the passphrase off again',
    example: 'reveille approver unseal',
    run: async (context) => (await approver()).approverUnseal(context),
  });
  addCommand<UserFlags>(group, {
    usage: 'reset',
    summary: "for a lost key: end all approvers of a user, with the executor stopped, on the executor's own folder",
    example: 'reveille approver reset --user alice',
    options: (command) => command.option('--user <label>', 'whose approvers'),
    run: async (context, flags) => (await approver()).approverReset(context, flags),
  });
  group.addHelpText('after', '\nExample:\n  $ reveille approver show');
}

export function addSubmitter(program: Command): void {
  const group = addGroup(program, 'submitter', 'programs that hand tasks over for one user and cannot answer');
  addCommand<UserFlags>(group, {
    usage: 'add <name>',
    summary: 'make a token for a program; it is shown once (needs EXECUTOR_ADMIN_TOKEN)',
    example: 'reveille submitter add my-agent',
    options: ofUser,
    run: async (context, flags, [name]) => (await submitter()).submitterAdd(context, flags, name!),
  });
  addCommand<UserFlags>(group, {
    usage: 'list',
    summary: 'list them, without their tokens (needs EXECUTOR_ADMIN_TOKEN)',
    example: 'reveille submitter list',
    options: anybody,
    run: async (context, flags) => (await submitter()).submitterList(context, flags),
  });
  addCommand(group, {
    usage: 'revoke <name-or-id>',
    summary: 'end a token (needs EXECUTOR_ADMIN_TOKEN)',
    example: 'reveille submitter revoke my-agent',
    run: async (context, _flags, [given]) => (await submitter()).submitterRevoke(context, given!),
  });
  group.addHelpText('after', '\nExample:\n  $ reveille submitter list');
}

const user = () => import('../commands/user.ts');

const ofCredential = (command: Command) =>
  command
    .option('--name <words>', 'what the credential is called: a device, a place')
    .option('--expires-in <duration>', 'it ends by itself after 12h, 90d (default: never)')
    .option('--expires-at <instant>', 'or at an RFC 3339 instant');

export function addUser(program: Command): void {
  const group = addGroup(program, 'user', "people who reach their agent through the router's public listener");
  addCommand<CredentialFlags>(group, {
    usage: 'add <user_id>',
    summary: 'let a person in; their token is shown once (needs ROUTER_ADMIN_TOKEN)',
    example: 'reveille user add alice --expires-in 90d',
    options: ofCredential,
    run: async (context, flags, [userId]) => (await user()).userAdd(context, flags, userId!),
  });
  addCommand<CredentialFlags>(group, {
    usage: 'token [user_id]',
    summary: "make one more token for a person, for another device (default: this machine's own user)",
    example: 'reveille user token alice --name phone',
    options: ofCredential,
    run: async (context, flags, [userId]) => (await user()).userToken(context, flags, userId),
  });
  addCommand<{ token?: string }>(group, {
    usage: 'revoke [user_id]',
    summary: 'end all tokens of a person at once, or one of them (needs ROUTER_ADMIN_TOKEN)',
    example: 'reveille user revoke alice --token 3f9a10c25d7e',
    options: (command) => command.option('--token <id>', 'only this one, by the id that the list shows'),
    run: async (context, flags, [userId]) => (await user()).userRevoke(context, flags, userId),
  });
  addCommand(group, {
    usage: 'list [user_id]',
    summary: 'list the tokens of everybody or of one person, without the tokens themselves',
    example: 'reveille user list',
    run: async (context, _flags, [userId]) => (await user()).userList(context, userId),
  });
  group.addHelpText('after', '\nExample:\n  $ reveille user list');
}
