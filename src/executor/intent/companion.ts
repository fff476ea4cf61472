/**
 * The calls that a manifest puts beside a tool (its dry run, its status, what reads it back), made out for one call of
 * it. Pure.
 */
import type { CompanionCall } from '../../wire/manifest.ts';
import { valueAt } from './pointer.ts';

/** What the placeholders of a companion call stand for. */
export type FillSources = {
  /** The call's arguments, as they are sent. */
  readonly args: Readonly<Record<string, unknown>>;
  /** Its structured result, where there is one. */
  readonly result?: unknown;
  /** Its idempotency key, where it has one. */
  readonly key?: string | undefined;
};

/** Arguments that are ready to be sent, or why there are none: a sentence. */
export type Filled = { readonly args: Readonly<Record<string, unknown>> } | { readonly missing: string };

const PLACEHOLDER = /^\$(args|result|key)(?=\/|$)(.*)$/s;

export type Placeholder = { readonly source: 'args' | 'result' | 'key'; readonly pointer: string };

/** What a text of a companion call stands for; `undefined` where it stands for itself. */
export function placeholderOf(text: string): Placeholder | undefined {
  const [, source, pointer = ''] = PLACEHOLDER.exec(text) ?? [];
  return source === undefined ? undefined : { source: source as Placeholder['source'], pointer };
}

/** Every placeholder in the arguments of a companion call, however deep. */
export function placeholdersOf(template: unknown): readonly Placeholder[] {
  if (typeof template === 'string') return [placeholderOf(template)].filter((found) => found !== undefined);
  if (typeof template !== 'object' || template === null) return [];
  return Object.values(template).flatMap(placeholdersOf);
}

class Missing extends Error {}

function fill(template: unknown, sources: FillSources): unknown {
  if (typeof template === 'string') {
    const placeholder = placeholderOf(template);
    if (placeholder === undefined) return template;
    const found = valueAt(sources[placeholder.source], placeholder.pointer);
    if (found === undefined) throw new Missing(`there is nothing at ${template}`);
    return found;
  }
  if (Array.isArray(template)) return template.map((entry) => fill(entry, sources));
  if (typeof template !== 'object' || template === null) return template;
  return Object.fromEntries(Object.entries(template).map(([name, member]) => [name, fill(member, sources)]));
}

/**
 * Puts the parts of a call in the place of the placeholders. Only a text that is a placeholder from end to end is one;
 * what takes its place is not looked at again, so arguments cannot bring placeholders of their own.
 */
export function fillIn(template: CompanionCall['args'], sources: FillSources): Filled {
  try {
    return { args: fill(template, sources) as Record<string, unknown> };
  } catch (thrown) {
    if (thrown instanceof Missing) return { missing: thrown.message };
    throw thrown;
  }
}
