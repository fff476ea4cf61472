/** `reveille notify …` and `reveille notifier`. */
import type { Command } from 'commander';
import type { NotifyAddFlags, NotifyUserFlags } from '../commands/notify.ts';
import { addCommand, addGroup } from './command.ts';

const load = () => import('../commands/notify.ts');

const ofUser = (command: Command) => command.option('--user <label>', "whose (default: this machine's own user)");

export function addNotify(program: Command): void {
  const group = addGroup(program, 'notify', 'where you are told of approvals, failures, missed rings and rings');
  addCommand<NotifyAddFlags>(group, {
    usage: 'add <channel> [command...]',
    summary: 'tell ntfy, webpush, webhook, a command or the desktop',
    example: 'reveille notify add ntfy --topic my-secret-topic --quiet 22:00-07:00',
    options: (command) =>
      ofUser(command)
        .option('--name <word>', "what the channel is called (default: the channel's kind)")
        .option('--about <kinds>', 'all, or some of approvals,failures,missed,rings (default: all but rings)')
        .option('--quiet <hours>', 'quiet hours, such as 22:00-07:00; what is held comes as one summary at their end')
        .option('--zone <name>', "the zone of the quiet hours (default: the machine's)")
        .option('--quiet-days <days>', 'on which days they begin, such as mon,tue (default: every day)')
        .option('--quiet-all', 'they hold approvals back as well')
        .option('--allow-private', 'the address may be on this computer or in a private network')
        .option('--server <url>', 'ntfy: the server (default: https://ntfy.sh)')
        .option('--topic <topic>', 'ntfy: the topic; on a public server, who knows it can read it')
        .option('--token <token>', 'ntfy: an access token')
        .option('--token-file <file>', 'ntfy: a file with the token; - reads standard input')
        .option('--url <url>', 'webhook: the address')
        .option('--secret <secret>', 'webhook: what it is signed with (default: one that is made and shown once)')
        .option('--subscription-file <file>', 'webpush: what PushSubscription.toJSON() gave in the browser'),
    run: async (context, flags, words) => (await load()).notifyAdd(context, flags, words),
  });
  addCommand<NotifyUserFlags>(group, {
    usage: 'list',
    summary: 'list the channels, when each was told last, and what is wrong with it',
    example: 'reveille notify list',
    options: (command) => command.option('--user <label>', 'whose (default: all)'),
    run: async (context, flags) => (await load()).notifyList(context, flags),
  });
  addCommand<NotifyUserFlags>(group, {
    usage: 'test <name>',
    summary: 'tell a channel something now',
    example: 'reveille notify test ntfy',
    options: ofUser,
    run: async (context, flags, [name]) => (await load()).notifyTest(context, flags, name!),
  });
  addCommand<NotifyUserFlags>(group, {
    usage: 'remove <name>',
    summary: 'tell a channel no more',
    example: 'reveille notify remove ntfy',
    options: ofUser,
    run: async (context, flags, [name]) => (await load()).notifyRemove(context, flags, name!),
  });
  group.addHelpText('after', '\nExample:\n  $ reveille notify list');
  addCommand(program, {
    usage: 'notifier',
    summary: 'tell the channels of this user, where no "reveille up" does it',
    example: 'reveille notifier',
    run: async (context) => (await load()).notifier(context),
  });
}
