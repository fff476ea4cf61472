/**
 * Parses a question of the executor: its own lines with quoted lines below them, and the changes of a dry run. Pure.
 */
import { isObject } from '../../wire/json.ts';
import { MARK, REMARK } from './visible.ts';

export type Section = { readonly title: string; readonly lines: readonly string[] };

/** The executor's lines, each with its quoted lines, without the marks. */
export function sectionsOf(question: string): Section[] {
  const sections: { title: string; lines: string[] }[] = [];
  for (const line of question.split('\n')) {
    const isMarked = line.startsWith(MARK) || line.startsWith(REMARK);
    if (!isMarked) sections.push({ title: line, lines: [] });
    else sections.at(-1)?.lines.push(line.slice(MARK.length));
  }
  return sections;
}

/** The lines up to the first empty line, which describe the call. */
export function headOf(question: string): string[] {
  const lines = question.split('\n');
  return lines.slice(0, Math.max(0, lines.indexOf('')));
}

/** Titles that do not describe the call, but the tool or its manifest entry. */
const OF_THE_TOOL = /^(?:May this tool be called\?|Effect:)/;

/**
 * The arguments that determine the call's effect, whole, as the executor selected them.
 *
 * @returns empty if the question does not begin with them
 */
export const effectOf = (question: string): Section[] =>
  sectionsOf(headOf(question).join('\n')).filter(({ title, lines }) => lines.length > 0 && !OF_THE_TOOL.test(title));

export type DryRun = { readonly outcome: string; readonly output: readonly string[] };

/** @returns `undefined` without a dry run */
export function dryRunOf(question: string): DryRun | undefined {
  const sections = sectionsOf(question);
  const tried = sections.findIndex(({ title }) => title.startsWith('Dry run:'));
  if (tried < 0) return undefined;
  const outcome = sections[tried]!.title.replace(/^Dry run: /, '').replace(/ This was called:$/, '');
  return { outcome, output: sections[tried + 1]?.title === 'In its own words:' ? sections[tried + 1]!.lines : [] };
}

type Fields = Readonly<Record<string, unknown>>;
const plain = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

/** A value that the call would change. */
export type Change = { readonly what: string; readonly from: string; readonly to: string };

/**
 * The changes that a dry run reports: each member that differs, named by the unchanged members.
 *
 * @returns `undefined` unless the output has `before` and `after` with records of the same members
 */
export function changesOf({ output: words }: Pick<DryRun, 'output'>): Change[] | undefined {
  let output: unknown;
  try {
    output = JSON.parse(words.join('\n'));
  } catch {
    return undefined;
  }
  if (!isObject(output)) return undefined;
  const [before, after] = [[output.before].flat(), [output.after].flat()];
  const pairs = before.map((was, at) => [was, after[at]] as const);
  if (before.length !== after.length || !pairs.every((pair): pair is [Fields, Fields] => pair.every(isObject)))
    return undefined;
  const found = pairs.flatMap(([was, is]) => {
    const names = Object.keys(was).filter((name) => name in is);
    const same = names.filter((name) => plain(was[name]) === plain(is[name])).map((name) => plain(was[name]));
    const differ = names.filter((name) => plain(was[name]) !== plain(is[name]));
    return differ.map((name) => ({ what: [...same, name].join(' '), from: plain(was[name]), to: plain(is[name]) }));
  });
  return found.length > 0 ? found : undefined;
}
