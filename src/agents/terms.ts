/**
 * What an alarm says of its turn, for agents without a Reveille daemon. A turn is refused where its agent could not keep
 * to the terms: it never runs with another model, or with more tools. Pure.
 */
import type { CommandSpec } from '../router/providers/command.ts';
import type { TurnTerms } from '../wire/wake.ts';
import type { Preset, TerminalPreset } from './preset.ts';

const quotedNames = (names: readonly string[]) => names.map((name) => JSON.stringify(name)).join(', ');

/** The model's name for OpenCode: a provider and its model. */
export function opencodeModel(name: string): { providerID: string; modelID: string } | undefined {
  const [, providerID, modelID] = /^([^/]+)\/(.+)$/.exec(name) ?? [];
  return providerID === undefined || modelID === undefined ? undefined : { providerID, modelID };
}

function modelProblem(preset: Preset, model: string): string | undefined {
  const got = `model (got ${JSON.stringify(model)})`;
  // A program would read it as another option.
  if (model.startsWith('-')) return `${got} must not begin with a dash`;
  switch (preset.kind) {
    case 'webhook':
    case 'openclaw':
      return undefined;
    case 'opencode':
      return opencodeModel(model) ? undefined : `${got} must be a provider and its model, such as anthropic/NAME`;
    case 'terminal':
      return preset.model ? undefined : `${got} cannot be chosen for the preset ${preset.name}; omit it`;
    case 'a2a':
      return `${got} cannot be chosen for the preset ${preset.name}; omit it`;
  }
}

function toolsProblem(preset: Preset, spec: CommandSpec, tools: readonly string[]): string | undefined {
  // The receiver of an event gets the list, and runs what it wants in any case.
  if (preset.kind === 'webhook') return undefined;
  const got = `tools (got ${quotedNames(tools) || 'none'})`;
  if (preset.kind !== 'terminal' || !preset.tools)
    return `${got} cannot be limited for the preset ${preset.name}; omit them`;
  const { names, excluded_by } = preset.tools;
  // The whole name: in the list of arguments a comma begins another one, and a dash an option.
  const form = new RegExp(`^(?:${names})$`);
  const other = tools.filter((name) => !form.test(name) || name.includes(',') || name.startsWith('-'));
  if (other.length > 0)
    return `${got} must be built-in tools of the preset ${preset.name}; it cannot be limited to ${quotedNames(other)}`;
  // After `--` a program takes the list for a part of the message.
  const found = (spec.args ?? []).find((entry) =>
    ['--', ...excluded_by].some((one) => entry === one || entry.startsWith(`${one}=`)),
  );
  return found === undefined
    ? undefined
    : `${got} cannot be limited on this machine, which is registered with ${found}; omit them`;
}

/** Why an agent cannot keep to the terms of a turn, with the remedy; `undefined` if it can. */
export function termsProblem(preset: Preset, spec: CommandSpec, terms: TurnTerms | undefined): string | undefined {
  const { model, tools } = terms ?? {};
  const problem =
    (model === undefined ? undefined : modelProblem(preset, model)) ??
    (tools === undefined ? undefined : toolsProblem(preset, spec, tools));
  return problem && `the turn was not begun: ${problem}`;
}

/** The arguments of a program for the terms of a turn, which {@link termsProblem} has accepted. */
export function termArguments({ model, tools }: TerminalPreset, terms: TurnTerms | undefined): string[] {
  const { model: name, tools: names } = terms ?? {};
  return [
    ...(name === undefined || !model ? [] : model.map((entry) => (entry === '<model>' ? name : entry))),
    ...(names === undefined || !tools
      ? []
      : tools.arguments.map((entry) => (entry === '<tools>' ? names.join(',') : entry))),
  ];
}
