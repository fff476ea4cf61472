/** `memory …`: what Neo remembers, to be seen, taken along and forgotten. */
import type { Command } from 'commander';
import type { ForgetFlags, MemoryListFlags } from '../commands/memory.ts';
import { addCommand, addGroup, type FlagValue } from './command.ts';

const load = () => import('../commands/memory.ts');

const dataDirOption = (command: Command) =>
  command.option('--data-dir <folder>', "Neo's data folder (default: that of this installation)");

const settings = ({ dataDir }: Record<string, FlagValue>) => ({
  NEO_DATA_DIR: typeof dataDir === 'string' ? dataDir : undefined,
});

export function addMemory(program: Command): void {
  const memory = addGroup(program, 'memory', 'what Neo remembers; works while it runs and while it sleeps');
  addCommand<MemoryListFlags>(memory, {
    usage: 'list',
    summary: 'list memories, the newest first, or search them',
    example: 'reveille memory list --query "home town"',
    options: (command) =>
      dataDirOption(command)
        .option('--query <words>', 'only what is found by these words, best first')
        .option('--kind <kind>', 'only of this kind: fact, event, preference, goal, pattern')
        .option('--limit <n>', 'at most so many (default: 100)')
        .option('--all', 'as many as there are, and also what newer memories contradict'),
    settings,
    run: async (context, flags) => (await load()).memoryList(context, flags),
  });
  addCommand<ForgetFlags>(memory, {
    usage: 'forget [id]',
    summary: 'forget a memory for good',
    example: 'reveille memory forget 01987c1e-2f',
    options: (command) =>
      dataDirOption(command).option('--all', 'forget everything').option('--yes', 'with --all: yes, everything'),
    settings,
    run: async (context, flags, [id]) => (await load()).memoryForget(context, flags, id),
  });
  addCommand(memory, {
    usage: 'export',
    summary: 'print all memories as JSON lines, with the turns that they were learned from',
    example: 'reveille memory export > memories.jsonl',
    options: dataDirOption,
    settings,
    run: async (context) => (await load()).memoryExport(context),
  });
}
