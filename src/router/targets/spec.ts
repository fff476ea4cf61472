/** Whether a machine's specification fits its preset, and what is missing. */
import { ReveilleError } from '../../wire/errors.ts';
import type { CommandSpec } from '../providers/command.ts';
import type { Preset } from './preset.ts';

const PROGRAM_MEMBERS = ['bin', 'args', 'env'] as const;

const ADDRESS_OF: Readonly<Record<Exclude<Preset['kind'], 'terminal'>, string>> = {
  opencode: 'the address of the OpenCode server, such as http://127.0.0.1:4096',
  openclaw: 'the address of the OpenClaw gateway, such as http://127.0.0.1:18789',
  a2a: "the address of the agent's HTTP+JSON interface, as its agent card has it",
  webhook: 'the address that events are posted to',
};

function refuse(message: string): never {
  throw new ReveilleError('invalid_request', message);
}

/** @throws ReveilleError `invalid_request` naming what is missing, or what does not belong to the preset */
export function checkSpec(preset: Preset, spec: CommandSpec): void {
  if (preset.kind === 'terminal') {
    if (spec.url !== undefined)
      refuse(`spec.url does not go with the preset ${preset.name}, which starts a program; leave it out`);
    if (spec.allow_private !== undefined)
      refuse('spec.allow_private goes only with presets of kind webhook; leave it out');
    if (spec.bin?.includes('/') && !spec.bin.startsWith('/'))
      refuse(`spec.bin must be a name or an absolute path (got ${JSON.stringify(spec.bin)})`);
    return;
  }
  const foreign = PROGRAM_MEMBERS.find((name) => spec[name] !== undefined);
  if (foreign !== undefined)
    refuse(`spec.${foreign} does not go with the preset ${preset.name}, which starts no program; leave it out`);
  if (spec.url === undefined) refuse(`spec.url is required for the preset ${preset.name}: ${ADDRESS_OF[preset.kind]}`);
  if (preset.kind !== 'webhook') {
    if (spec.allow_private !== undefined)
      refuse('spec.allow_private goes only with presets of kind webhook; leave it out');
    if (new URL(spec.url).search !== '')
      refuse(`spec.url must be an address without a query for the preset ${preset.name}`);
  }
  if (preset.kind !== 'opencode' && spec.cwd !== undefined)
    refuse(`spec.cwd does not go with the preset ${preset.name}; leave it out`);
}
