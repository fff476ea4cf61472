/** Fills in the companion calls of a tool (dry run, status, read-back) for one of its calls. Pure. */
import type { CompanionCall } from '../../wire/manifest.ts';
import { valueAt } from './pointer.ts';

/** The values of the placeholders of a companion call. */
export type FillSources = {
  /** The call's arguments, as they are sent. */
  readonly args: Readonly<Record<string, unknown>>;
  /** Its structured result, if there is one. */
  readonly result?: unknown;
  /** Its idempotency key, if it has one. */
  readonly key?: string | undefined;
};

/** Arguments that can be sent, or a sentence about the missing value. */
export type Filled = { readonly args: Readonly<Record<string, unknown>> } | { readonly missing: string };

const PLACEHOLDER = /^\$(args|result|key)(?=\/|$)(.*)$/s;

export type Placeholder = { readonly source: 'args' | 'result' | 'key'; readonly pointer: string };

/** The placeholder that a text is; `undefined` for plain text. */
export function placeholderOf(text: string): Placeholder | undefined {
  const [, source, pointer = ''] = PLACEHOLDER.exec(text) ?? [];
  return source === undefined ? undefined : { source: source as Placeholder['source'], pointer };
}

/** Every placeholder in the arguments of a companion call, at any depth. */
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
    if (found === undefined) throw new Missing(`there is no value at ${template}`);
    return found;
  }
  if (Array.isArray(template)) return template.map((entry) => fill(entry, sources));
  if (typeof template !== 'object' || template === null) return template;
  return Object.fromEntries(Object.entries(template).map(([name, member]) => [name, fill(member, sources)]));
}

/**
 * Replaces the placeholders by parts of a call. Only a text that is a placeholder as a whole is replaced. Inserted
 * values are not searched, so arguments cannot contain placeholders.
 */
export function fillIn(template: CompanionCall['args'], sources: FillSources): Filled {
  try {
    return { args: fill(template, sources) as Record<string, unknown> };
  } catch (thrown) {
    if (thrown instanceof Missing) return { missing: thrown.message };
    throw thrown;
  }
}
