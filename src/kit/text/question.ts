/** Reading a question of the executor: lines of ours with the marked lines of others below, and what a dry run changes. Pure. */
import { MARK, REMARK } from './visible.ts';

export type Section = { readonly title: string; readonly lines: readonly string[] };

/** Lines of ours, each with the marked lines of others below it, without their marks. */
export function sectionsOf(question: string): Section[] {
  const sections: { title: string; lines: string[] }[] = [];
  for (const line of question.split('\n')) {
    const isMarked = line.startsWith(MARK) || line.startsWith(REMARK);
    if (!isMarked) sections.push({ title: line, lines: [] });
    else sections.at(-1)?.lines.push(line.slice(MARK.length));
  }
  return sections;
}

/** Up to the first empty line: what the call does. */
export function headOf(question: string): string[] {
  const lines = question.split('\n');
  return lines.slice(0, Math.max(0, lines.indexOf('')));
}

/** Titles that say nothing of one call: those of the tool, and of what its manifest says. */
const OF_THE_TOOL = /^(?:May this tool be called\?|Effect:)/;

/**
 * The arguments that say what the call does, whole, as the executor chose them.
 *
 * @returns empty for a question that shows none of them first
 */
export const effectOf = (question: string): Section[] =>
  sectionsOf(headOf(question).join('\n')).filter(({ title, lines }) => lines.length > 0 && !OF_THE_TOOL.test(title));

/** What a dry run came to, and what it said. */
export type Trial = { readonly outcome: string; readonly words: readonly string[] };

/** @returns `undefined` where nothing was tried out */
export function trialOf(question: string): Trial | undefined {
  const sections = sectionsOf(question);
  const tried = sections.findIndex(({ title }) => title.startsWith('Dry run:'));
  if (tried < 0) return undefined;
  const outcome = sections[tried]!.title.replace(/^Dry run: /, '').replace(/ This was called:$/, '');
  return { outcome, words: sections[tried + 1]?.title === 'In its own words:' ? sections[tried + 1]!.lines : [] };
}

type Fields = Readonly<Record<string, unknown>>;
const isRecord = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const plain = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

/** Something that stands otherwise afterwards. */
export type Change = { readonly what: string; readonly from: string; readonly to: string };

/**
 * What a dry run says stands before and after: each member that differs, beside those that say of what.
 *
 * @returns `undefined` where it does not say that in a form that is known: `before` and `after`, records of the same
 *   members
 */
export function changesOf({ words }: Pick<Trial, 'words'>): Change[] | undefined {
  let said: unknown;
  try {
    said = JSON.parse(words.join('\n'));
  } catch {
    return undefined;
  }
  if (!isRecord(said)) return undefined;
  const [before, after] = [[said.before].flat(), [said.after].flat()];
  const pairs = before.map((was, at) => [was, after[at]] as const);
  if (before.length !== after.length || !pairs.every((pair): pair is [Fields, Fields] => pair.every(isRecord)))
    return undefined;
  const found = pairs.flatMap(([was, is]) => {
    const names = Object.keys(was).filter((name) => name in is);
    const same = names.filter((name) => plain(was[name]) === plain(is[name])).map((name) => plain(was[name]));
    const differ = names.filter((name) => plain(was[name]) !== plain(is[name]));
    return differ.map((name) => ({ what: [...same, name].join(' '), from: plain(was[name]), to: plain(is[name]) }));
  });
  return found.length > 0 ? found : undefined;
}
