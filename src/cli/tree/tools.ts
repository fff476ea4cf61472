/** `tools …`: the tools of agent manifests. */
import type { Command } from 'commander';
import { addCommand, addGroup } from './command.ts';

export function addTools(program: Command): void {
  const tools = addGroup(program, 'tools', 'look after the tools that agent manifests declare');
  addCommand(tools, {
    usage: 'pin [manifest]',
    summary: 'write down how each tool is described now, so that a change is noticed (default: the manifest of Neo)',
    example: 'reveille tools pin agents/neo.json',
    run: async (context, _flags, [manifest]) => (await import('../commands/tools-pin.ts')).toolsPin(context, manifest),
  });
}
