/** What a person does beside their agent: talking to it, and reading what it did. */
import type { Command } from 'commander';
import type { ChatFlags } from '../commands/chat.ts';
import type { ConnectFlags } from '../commands/connect.ts';
import type { LogFlags } from '../commands/log.ts';
import { addCommand } from './command.ts';

export function addChat(program: Command): void {
  addCommand<ChatFlags>(program, {
    usage: 'chat [question]',
    summary: 'talk to your agent; with a question, or one from a pipe, print its answer and end',
    example: 'reveille chat "What is due today?"',
    options: (command) =>
      command
        .option('--conversation <id>', 'go on with this conversation')
        .option('--last', 'go on with the latest one')
        .option('--router <url>', "the public listener of another machine's router; its credential is REVEILLE_TOKEN"),
    run: async (context, flags, [question]) => (await import('../commands/chat.ts')).chat(context, flags, question),
  });
}

export function addLog(program: Command): void {
  addCommand<LogFlags>(program, {
    usage: 'log',
    summary: 'what the agent did: rings, replies, tasks and failures, newest last',
    example: 'reveille log --since 12h --follow',
    options: (command) =>
      command
        .option('--since <when>', 'from when on: 12h, 2d, or 2026-06-15T09:00:00Z (default: 24h)')
        .option('--follow', 'go on with what happens, until Ctrl-C')
        .option('--agent <label>', 'the agent with this label (default: the one of this installation)'),
    run: async (context, flags) => (await import('../commands/log.ts')).log(context, flags),
  });
}

export function addConnect(program: Command): void {
  addCommand<ConnectFlags>(program, {
    usage: 'connect [client]',
    summary:
      'write our MCP servers and the time hook into the configuration of claude, codex, gemini, cursor, vscode or claude-desktop; without one, say which are connected',
    example: 'reveille connect claude',
    tolerant: true,
    options: (command) =>
      command
        .option('--project', 'into the files of this folder, instead of those for everywhere')
        .option('--without <parts...>', 'leave out alarms, time or hook')
        .option('--print', 'show what would change, and write nothing')
        .option('--yes', 'write it without asking')
        .option('--wake', 'let wakes start this client in this folder, and resume the session that set the alarm')
        .option('--no-wake', 'leave the wake target as it is, and do not ask')
        .option('--test', 'set two test alarms in the end: one starts a session, the next one resumes it')
        .option('--undo', 'take it back: what was there before, if nobody changed it since, else without our entries'),
    run: async (context, flags, [client]) => (await import('../commands/connect.ts')).connect(context, flags, client),
  });
}
