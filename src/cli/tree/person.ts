/** `chat`, `log` and `connect`: talk to the agent, read what it did, and connect clients. */
import type { Command } from 'commander';
import type { ChatFlags } from '../commands/chat.ts';
import type { ConnectFlags } from '../commands/connect.ts';
import type { LogFlags } from '../commands/log.ts';
import { addCommand } from './command.ts';

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
