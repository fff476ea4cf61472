/** `chat`, `log`, `connect`, `time`, `profile` and `notify`: what the user does beside their agent. */
import type { Command } from 'commander';
import type { ChatFlags } from '../commands/chat.ts';
import type { ConnectFlags } from '../commands/connect.ts';
import type { LogFlags } from '../commands/log.ts';
import type { NotifyAddFlags } from '../commands/notify.ts';
import type { ProfileInitFlags } from '../commands/profile.ts';
import type { HookFlags, TimeFlags } from '../commands/time.ts';
import { addCommand, addGroup, ofOneUser, ofUser, type UserFlags } from './command.ts';

export function addChat(program: Command): void {
  addCommand<ChatFlags>(program, {
    usage: 'chat [question]',
    summary: 'chat with your agent, or ask one question',
    examples: ['reveille chat', 'reveille chat "What is due today?"'],
    options: (command) =>
      command
        .option('--conversation <id>', 'continue this conversation')
        .option('--last', 'continue the latest conversation')
        .option('--router <url>', 'the public listener of another router; set your token in REVEILLE_TOKEN'),
    run: async (context, flags, [question]) => (await import('../commands/chat.ts')).chat(context, flags, question),
  });
}

export function addLog(program: Command): void {
  addCommand<LogFlags>(program, {
    usage: 'log',
    summary: 'show what the agent did: fires, replies, intents and failures',
    examples: ['reveille log --since 12h', 'reveille log --follow'],
    options: (command) =>
      command
        .option('--since <when>', 'start time: 12h, 2d, or 2026-06-15T09:00:00Z (default: 24h)')
        .option('--follow', 'continue with new entries, until Ctrl-C')
        .option('--agent <label>', 'label of the agent (default: the agent of this installation)'),
    run: async (context, flags) => (await import('../commands/log.ts')).log(context, flags),
  });
}

export function addConnect(program: Command): void {
  addCommand<ConnectFlags>(program, {
    usage: 'connect [client]',
    summary: 'connect a client: claude, codex, gemini, cursor, vscode or claude-desktop (default: list clients)',
    examples: ['reveille connect', 'reveille connect claude --wake --test'],
    tolerant: true,
    options: (command) =>
      command
        .option('--project', 'write the configuration of this folder instead of the user configuration')
        .option('--without <parts...>', 'omit alarms, time or hook')
        .option('--print', 'print the changes; write nothing')
        .option('--yes', 'write without a question')
        .option('--wake', 'let alarms start this client in this folder and resume the session that set them')
        .option('--no-wake', 'do not change the wake target')
        .option('--test', 'set two test alarms: one starts a session, one resumes it')
        .option('--undo', 'remove our entries from the configuration'),
    run: async (context, flags, [client]) => (await import('../commands/connect.ts')).connect(context, flags, client),
  });
}

const time = () => import('../commands/time.ts');
const profile = () => import('../commands/profile.ts');

export function addTime(program: Command): void {
  const shown = addCommand<TimeFlags>(program, {
    usage: 'time',
    summary: 'show your sessions and breaks of today',
    examples: ['reveille time', 'reveille time --week'],
    options: (command) =>
      command
        .option('--week', 'the seven days up to the day')
        .option('--date <date>', 'the day (default: today): 2026-06-15'),
    run: async (context, flags) => (await time()).time(context, flags),
  });
  addCommand<HookFlags>(shown, {
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
    run: async (context, flags) => (await time()).timeHook(context, flags),
  });
}

export function addProfile(program: Command): void {
  const group = addGroup(program, 'profile', 'declare your day: end, energy zones, breaks and consent', [
    'reveille profile init',
    'reveille profile check',
  ]);
  addCommand(group, {
    usage: 'check [file]',
    summary: 'validate a profile and print what applies today (default: the profile in use)',
    examples: ['reveille profile check', 'reveille profile check profile.yaml'],
    tolerant: true,
    run: async (context, _flags, [file]) => (await profile()).profileCheck(context, file),
  });
  addCommand<ProfileInitFlags>(group, {
    usage: 'init',
    summary: 'ask a few questions and write a profile; an existing one stays',
    examples: ['reveille profile init', 'reveille profile init --yes'],
    tolerant: true,
    options: (command) => command.option('--yes', 'write an empty profile with every field explained'),
    run: async (context, flags) => (await profile()).profileInit(context, flags),
  });
}

const notify = () => import('../commands/notify.ts');

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
    run: async (context, flags, words) => (await notify()).notifyAdd(context, flags, words),
  });
  addCommand<UserFlags>(group, {
    usage: 'list',
    summary: 'list channels with their last notification and last error',
    examples: ['reveille notify list', 'reveille notify list --json'],
    options: ofOneUser,
    run: async (context, flags) => (await notify()).notifyList(context, flags),
  });
  addCommand<UserFlags>(group, {
    usage: 'test <name>',
    summary: 'send a test notification',
    examples: ['reveille notify test ntfy', 'reveille notify test desktop'],
    options: ofUser,
    run: async (context, flags, [name]) => (await notify()).notifyTest(context, flags, name!),
  });
  addCommand<UserFlags>(group, {
    usage: 'remove <name>',
    summary: 'remove a channel',
    examples: ['reveille notify remove ntfy', 'reveille notify remove desktop'],
    options: ofUser,
    run: async (context, flags, [name]) => (await notify()).notifyRemove(context, flags, name!),
  });
  addCommand(program, {
    usage: 'notifier',
    summary: 'send notifications when "reveille up" does not run here',
    examples: ['reveille notifier', 'REVEILLE_LOG=info reveille notifier'],
    run: async (context) => (await notify()).notifier(context),
  });
}
