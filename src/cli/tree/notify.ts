/** `reveille notify …` and `reveille notifier`. */
import type { Command } from 'commander';
import type { NotifyAddFlags, NotifyUserFlags } from '../commands/notify.ts';
import { addCommand, addGroup } from './command.ts';

const load = () => import('../commands/notify.ts');

const ofUser = (command: Command) =>
  command.option('--user <label>', 'the user (default: the user of this installation)');

/** The wire name of the kind. */
const FIRED_KIND = 'rings';

export function addNotify(program: Command): void {
  const group = addGroup(program, 'notify', 'manage notification channels', [
    'reveille notify add desktop',
    'reveille notify list',
  ]);
  addCommand<NotifyAddFlags>(group, {
    usage: 'add <channel> [command...]',
    summary: 'add a channel: ntfy, webpush, webhook, command or desktop',
    examples: ['reveille notify add desktop', 'reveille notify add ntfy --topic my-secret-topic --quiet 22:00-07:00'],
    options: (command) =>
      ofUser(command)
        .option('--name <word>', 'name of the channel (default: its kind)')
        .option(
          '--about <kinds>',
          `all, or some of approvals,failures,missed,${FIRED_KIND}; ${FIRED_KIND} means that an alarm fired (default: all but ${FIRED_KIND})`,
        )
        .option('--quiet <hours>', 'quiet hours, such as 22:00-07:00; one summary follows at their end')
        .option('--zone <name>', "time zone of the quiet hours (default: the computer's)")
        .option('--quiet-days <days>', 'days on which quiet hours begin, such as mon,tue (default: every day)')
        .option('--quiet-all', 'quiet hours also defer approvals')
        .option('--allow-private', 'allow an address on this computer or in a private network')
        .option('--server <url>', 'ntfy: the server (default: https://ntfy.sh)')
        .option('--topic <topic>', 'ntfy: the topic; on a public server anyone who knows it can read it')
        .option('--token <token>', 'ntfy: an access token')
        .option('--token-file <file>', 'ntfy: a file with the token; - reads standard input')
        .option('--url <url>', 'webhook: the address')
        .option('--secret <secret>', 'webhook: the signing secret (default: a new one, shown once)')
        .option('--subscription-file <file>', 'webpush: the JSON of PushSubscription.toJSON() in the browser'),
    run: async (context, flags, words) => (await load()).notifyAdd(context, flags, words),
  });
  addCommand<NotifyUserFlags>(group, {
    usage: 'list',
    summary: 'list channels with their last notification and last error',
    examples: ['reveille notify list', 'reveille notify list --json'],
    options: (command) => command.option('--user <label>', 'only of this user (default: all users)'),
    run: async (context, flags) => (await load()).notifyList(context, flags),
  });
  addCommand<NotifyUserFlags>(group, {
    usage: 'test <name>',
    summary: 'send a test notification',
    examples: ['reveille notify test ntfy', 'reveille notify test desktop'],
    options: ofUser,
    run: async (context, flags, [name]) => (await load()).notifyTest(context, flags, name!),
  });
  addCommand<NotifyUserFlags>(group, {
    usage: 'remove <name>',
    summary: 'remove a channel',
    examples: ['reveille notify remove ntfy', 'reveille notify remove desktop'],
    options: ofUser,
    run: async (context, flags, [name]) => (await load()).notifyRemove(context, flags, name!),
  });
  addCommand(program, {
    usage: 'notifier',
    summary: 'send notifications when "reveille up" does not run here',
    examples: ['reveille notifier', 'REVEILLE_LOG=info reveille notifier'],
    run: async (context) => (await load()).notifier(context),
  });
}
