/** `agent …`, `approver …`, `submitter …` and `user …`: identities, keys and tokens. */
import type { Command } from 'commander';
import type { EnrollFlags, KeyFlags, ReownFlags, RotateFlags } from '../commands/agent.ts';
import type { ApproverFlags } from '../commands/approver.ts';
import type { CredentialFlags } from '../commands/user.ts';
import { addCommand, addGroup, ofOneUser, ofUser, type UserFlags } from './command.ts';

const load = () => import('../commands/agent.ts');

export function addAgent(program: Command): void {
  const agent = addGroup(program, 'agent', 'show this agent, and manage the agent keys that chronosd accepts', [
    'reveille agent whoami',
    'reveille agent list',
  ]);
  addCommand(agent, {
    usage: 'whoami',
    summary: "show this agent's identity; creates it on first use",
    examples: ['reveille agent whoami', 'reveille agent whoami --json'],
    run: async (context) => (await load()).agentWhoami(context),
  });
  addCommand<EnrollFlags>(agent, {
    usage: 'enroll',
    summary: 'register an agent key, or all keys of a file (needs CHRONOS_ADMIN_TOKEN)',
    examples: [
      'reveille agent enroll --label alice --key-file ~/alice.key',
      'reveille agent enroll --from agents.jsonl --output ./agents',
    ],
    options: (command) =>
      command
        .option('--label <label>', "the label (default: this agent's own)")
        .option('--public-key <hex>', 'the public key, as "agent whoami" prints it')
        .option('--key-file <file>', "a key file with the public key (default: this agent's own)")
        .option(
          '--from <file>',
          'many agents: a JSON object with label and public_key on each line; - reads standard input',
        )
        .option('--output <folder>', "with --from: write each agent's configuration, and create missing keys"),
    run: async (context, flags) => (await load()).agentEnroll(context, flags),
  });
  addCommand<RotateFlags>(agent, {
    usage: 'rotate',
    summary: "replace this agent's key, or those of a folder; alarms stay, and the old key ends at once",
    examples: ['reveille agent rotate', 'reveille agent rotate --keys /etc/reveille/agent-keys'],
    options: (command) =>
      command
        .option('--label <label>', "the label (default: this agent's own)")
        .option('--key-file <file>', "the key file (default: this agent's own)")
        .option('--keys <folder>', 'all keys <label>.key of a folder, as in MATRIX_AGENT_KEYS'),
    run: async (context, flags) => (await load()).agentRotate(context, flags),
  });
  addCommand(agent, {
    usage: 'orphans',
    summary: 'list labels with waiting alarms and no usable key (needs CHRONOS_ADMIN_TOKEN)',
    examples: ['reveille agent orphans', 'reveille agent orphans --json'],
    run: async (context) => (await load()).agentOrphans(context),
  });
  addCommand<ReownFlags>(agent, {
    usage: 'reown <label>',
    summary: 'give the alarms of a label without a usable key to another owner (needs CHRONOS_ADMIN_TOKEN)',
    examples: ['reveille agent reown alice --to bob', 'reveille agent reown alice --public-key "$(cat new.pub)"'],
    options: (command) =>
      command
        .option('--to <label>', 'move the alarms, with their history, to this label')
        .option('--public-key <hex>', 'leave them, and enrol this key for their label'),
    run: async (context, flags, [label]) => (await load()).agentReown(context, label!, flags),
  });
  addCommand(agent, {
    usage: 'list',
    summary: 'list registered agent keys (needs CHRONOS_ADMIN_TOKEN)',
    examples: ['reveille agent list', 'reveille agent list --json'],
    run: async (context) => (await load()).agentList(context),
  });
  addCommand<KeyFlags>(agent, {
    usage: 'revoke',
    summary: 'revoke one agent key of a label, or all of them (needs CHRONOS_ADMIN_TOKEN)',
    examples: ['reveille agent revoke --label alice', 'reveille agent revoke --label alice --public-key 6b3f9a10'],
    options: (command) =>
      command
        .option('--label <label>', 'the label')
        .option('--public-key <hex>', 'only this key, or its first characters (default: all keys of the label)'),
    run: async (context, flags) => (await load()).agentRevoke(context, flags),
  });
}

const approver = () => import('../commands/approver.ts');
const submitter = () => import('../commands/submitter.ts');

export function addApprover(program: Command): void {
  const group = addGroup(program, 'approver', 'manage the keys that sign approvals', [
    'reveille approver show',
    'reveille approver enroll',
  ]);
  addCommand<ApproverFlags>(group, {
    usage: 'enroll',
    summary: 'create and enroll your key, or vouch for the key of another computer (needs EXECUTOR_ADMIN_TOKEN)',
    examples: ['reveille approver enroll', 'reveille approver enroll --request-file laptop.json'],
    options: (command) =>
      ofUser(command)
        .option('--name <words>', 'name of the key (default: you at this computer)')
        .option('--request-file <file>', 'sign the enrollment request of another key; - reads standard input'),
    run: async (context, flags) => (await approver()).approverEnroll(context, flags),
  });
  addCommand<UserFlags>(group, {
    usage: 'list',
    summary: 'list approver keys, revoked ones included (needs EXECUTOR_ADMIN_TOKEN)',
    examples: ['reveille approver list', 'reveille approver list --user alice'],
    options: ofOneUser,
    run: async (context, flags) => (await approver()).approverList(context, flags),
  });
  addCommand<UserFlags>(group, {
    usage: 'revoke <key>',
    summary: 'revoke a key; another active key signs the revocation (needs EXECUTOR_ADMIN_TOKEN)',
    examples: ['reveille approver revoke 6b3f9a10', 'reveille approver revoke 6b3f9a10 --user alice'],
    options: ofUser,
    run: async (context, flags, [key]) => (await approver()).approverRevoke(context, flags, key!),
  });
  addCommand(group, {
    usage: 'show',
    summary: 'show your public key and where the key is stored',
    examples: ['reveille approver show', 'reveille approver show --json'],
    run: async (context) => (await approver()).approverShow(context),
  });
  addCommand(group, {
    usage: 'seal',
    summary: 'encrypt your key with a passphrase; each answer asks for it',
    examples: ['reveille approver seal', 'reveille approver seal --json'],
    run: async (context) => (await approver()).approverSeal(context),
  });
  addCommand(group, {
    usage: 'unseal',
    summary: 'remove the passphrase of your key',
    examples: ['reveille approver unseal', 'reveille approver unseal --json'],
    run: async (context) => (await approver()).approverUnseal(context),
  });
  addCommand<UserFlags>(group, {
    usage: 'reset',
    summary: 'remove all approvers of a user after a lost key; stop the executor first',
    examples: ['reveille approver reset --user alice'],
    options: (command) => command.option('--user <label>', 'the user whose approvers are removed'),
    run: async (context, flags) => (await approver()).approverReset(context, flags),
  });
}

export function addSubmitter(program: Command): void {
  const group = addGroup(program, 'submitter', 'manage programs that may submit intents for one user', [
    'reveille submitter add my-agent',
    'reveille submitter list',
  ]);
  addCommand<UserFlags>(group, {
    usage: 'add <name>',
    summary: 'create a token for a program, shown once (needs EXECUTOR_ADMIN_TOKEN)',
    examples: ['reveille submitter add my-agent', 'reveille submitter add my-agent --user alice'],
    options: ofUser,
    run: async (context, flags, [name]) => (await submitter()).submitterAdd(context, flags, name!),
  });
  addCommand<UserFlags>(group, {
    usage: 'list',
    summary: 'list submitters, without their tokens (needs EXECUTOR_ADMIN_TOKEN)',
    examples: ['reveille submitter list', 'reveille submitter list --user alice'],
    options: ofOneUser,
    run: async (context, flags) => (await submitter()).submitterList(context, flags),
  });
  addCommand(group, {
    usage: 'revoke <name-or-id>',
    summary: 'revoke a token (needs EXECUTOR_ADMIN_TOKEN)',
    examples: ['reveille submitter revoke my-agent', 'reveille submitter revoke 3f9a10c25d7e'],
    run: async (context, _flags, [given]) => (await submitter()).submitterRevoke(context, given!),
  });
}

const user = () => import('../commands/user.ts');

const ofCredential = (command: Command) =>
  command
    .option('--name <words>', 'name of the token, such as the device')
    .option('--expires-in <duration>', 'the token expires after 12h, 90d (default: never)')
    .option('--expires-at <instant>', 'the token expires at an RFC 3339 instant');

export function addUser(program: Command): void {
  const group = addGroup(program, 'user', "manage users of the router's public listener", [
    'reveille user add alice --expires-in 90d',
    'reveille user list',
  ]);
  addCommand<CredentialFlags>(group, {
    usage: 'add <user_id>',
    summary: 'add a user and print their token once (needs ROUTER_ADMIN_TOKEN)',
    examples: ['reveille user add alice --expires-in 90d', 'reveille user add bob --name laptop'],
    options: ofCredential,
    run: async (context, flags, [userId]) => (await user()).userAdd(context, flags, userId!),
  });
  addCommand<CredentialFlags>(group, {
    usage: 'token [user_id]',
    summary: 'create another token for a user (default: the user of this installation)',
    examples: ['reveille user token --name phone', 'reveille user token alice --name phone'],
    options: ofCredential,
    run: async (context, flags, [userId]) => (await user()).userToken(context, flags, userId),
  });
  addCommand<{ token?: string }>(group, {
    usage: 'revoke [user_id]',
    summary: 'revoke all tokens of a user, or one of them (needs ROUTER_ADMIN_TOKEN)',
    examples: ['reveille user revoke alice', 'reveille user revoke alice --token 3f9a10c25d7e'],
    options: (command) => command.option('--token <id>', 'only this token, by its id in the list'),
    run: async (context, flags, [userId]) => (await user()).userRevoke(context, flags, userId),
  });
  addCommand(group, {
    usage: 'list [user_id]',
    summary: 'list token ids of all users or of one user',
    examples: ['reveille user list', 'reveille user list alice'],
    run: async (context, _flags, [userId]) => (await user()).userList(context, userId),
  });
}

const client = () => import('../commands/client.ts');

export function addClient(program: Command): void {
  const group = addGroup(program, 'client', 'list and disconnect MCP clients that users gave access', [
    'reveille client list',
    'reveille client revoke 3f9a10c25d7e',
  ]);
  addCommand<UserFlags>(group, {
    usage: 'list',
    summary: 'list connected clients, the newest first',
    examples: ['reveille client list', 'reveille client list --json'],
    options: ofOneUser,
    run: async (context, flags) => (await client()).clientList(context, flags),
  });
  addCommand<UserFlags>(group, {
    usage: 'revoke <id>',
    summary: 'end the access of a client at once',
    examples: ['reveille client revoke 3f9a10c25d7e'],
    options: ofOneUser,
    run: async (context, flags, [id]) => (await client()).clientRevoke(context, flags, id!),
  });
}

export function addEvents(program: Command): void {
  const group = addGroup(program, 'events', 'subscriptions of MCP clients to events', ['reveille events list']);
  addCommand<UserFlags>(group, {
    usage: 'list',
    summary: 'list subscriptions by webhook, and why ended ones have ended',
    examples: ['reveille events list', 'reveille events list --user alice'],
    options: ofOneUser,
    run: async (context, flags) => (await import('../commands/events.ts')).eventsList(context, flags),
  });
}
