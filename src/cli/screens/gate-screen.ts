/**
 * A waiting question on a terminal. The executor's text does not know how wide the terminal is; here each of its lines
 * is broken before the terminal would do it, so that every line on the screen that has text of others begins with their
 * mark. What the call does stands first, and once more right above the prompt. Pure.
 */

import type { WaitingGate } from '../../executor/client.ts';
import { laidOpen } from '../../kit/text/hidden-characters.ts';
import { changesOf, effectOf, headOf, trialOf } from '../../kit/text/question.ts';
import { argumentLines, brief, MARK, quoted, quotedJson, REMARK, wholeLines } from '../../kit/text/visible.ts';
import { wrap } from './columns.ts';
import type { Look } from './render.ts';

/** Begins what a marked line goes on with. */
const GOES_ON = '  |+ ';
const OWN_INDENT = '    ';
const NARROWEST = 20;
/** Right above the prompt no more than so many changes are said. */
const CHANGES = 4;

/**
 * The most cells that a terminal gives a character. Terminals disagree about emoji, joined and ambiguous characters;
 * none gives a code point more than two.
 */
const cellsOf = (character: string) => (character <= '\u007e' ? 1 : 2);

/** Cuts a text such that no terminal needs more than `width` cells for a piece. */
function pieces(text: string, width: number): string[] {
  const found: string[] = [];
  let piece = '';
  let cells = 0;
  for (const character of text) {
    if (cells + cellsOf(character) > width && piece !== '') {
      found.push(piece);
      piece = '';
      cells = 0;
    }
    piece += character;
    cells += cellsOf(character);
  }
  return [...found, piece];
}

/** A line of ours is wrapped at its blanks; a word that is longer than a line is cut. */
function ownLine(line: string, width: number): string[] {
  if (pieces(line, width).length === 1) return [line];
  return wrap(line, width - OWN_INDENT.length)
    .flatMap((part) => pieces(part, width - OWN_INDENT.length))
    .map((part, at) => (at === 0 ? part : `${OWN_INDENT}${part}`));
}

function markedLine(line: string, mark: string, width: number): string[] {
  const parts = pieces(line.slice(mark.length), width - GOES_ON.length);
  return parts.map((part, at) => `${at === 0 ? mark : GOES_ON}${part}`);
}

/**
 * Lines as the executor wrote them, as lines of a terminal.
 *
 * @param lines each without an end of a line; those of others begin with {@link MARK} or {@link REMARK}
 */
export function screenLines(lines: readonly string[], look: Pick<Look, 'width'>): string[] {
  // A line that ends in the last column is followed by an empty one on some terminals.
  const width = Math.max(NARROWEST, look.width) - 1;
  return lines.map(laidOpen).flatMap((line) => {
    const mark = [MARK, REMARK].find((one) => line.startsWith(one));
    return mark === undefined ? ownLine(line, width) : markedLine(line, mark, width);
  });
}

/** Text of others below a title of ours, each line marked. */
export function markedBlock(title: string, text: string, look: Look): string[] {
  return [look.paint('dim', title), ...screenLines(quoted(text), look)];
}

const holds = (lines: readonly string[], part: readonly string[]) =>
  `\n${lines.join('\n')}\n`.includes(`\n${part.join('\n')}\n`);

/** What a question says first: the tool, and the arguments that say what the call does, whole. */
function happensOf({ question, call }: WaitingGate): string[] {
  const head = headOf(question);
  const tool = brief(JSON.stringify(call.tool));
  // The tool is that of the very call, whatever the question says.
  const named = holds(head, tool) ? head : ['This tool would be called:', ...tool, ...head];
  // An executor of an earlier version does not say which arguments matter.
  return effectOf(question).length > 0 ? named : [...named, 'Every argument, whole:', ...wholeLines(call.args)];
}

/** The very call, where the question does not show it as it is laid out here, and whole when it is asked for. */
function callLines({ question, call }: WaitingGate, full: boolean): string[] {
  const shown = question.split('\n');
  if (!full && holds(shown, argumentLines(call.args))) return [];
  const args = full ? quotedJson(JSON.stringify(call.args, null, 2)) : argumentLines(call.args);
  return ['', 'Exactly this call is made:', ...quotedJson(JSON.stringify(call.tool)), ...args];
}

/**
 * The whole question, and the very call that would be made.
 *
 * @param full long texts are not cut
 */
export function renderGate(intentId: string, gate: WaitingGate, look: Look, full = false): string[] {
  const { question, call, node_id } = gate;
  return [
    ...screenLines([`Intent ${intentId} waits for your approval of this step:`, ...quoted(node_id)], look),
    '',
    ...screenLines([...question.split('\n'), ...callLines(gate, full)], look),
    ...screenLines([`call_sha256 ${call.call_sha256}`, `displayed_sha256 ${gate.displayed_sha256}`], look).map((line) =>
      look.paint('dim', line),
    ),
  ];
}

/** What stands right above the prompt, however much scrolled away before: what the call does, whole. */
export function renderGist(gate: WaitingGate, look: Look): string[] {
  return [
    look.paint('dim', '-'.repeat(Math.min(60, Math.max(NARROWEST, look.width) - 1))),
    ...screenLines([...changeLines(gate), ...happensOf(gate)], look),
  ];
}

/** Begins what a person reads of a question in the middle of a conversation; the rest is there for the asking. */
const INLINE = ['Arguments, exactly', 'Careful:', 'Where the values come from', 'Asked for by', 'Handed over'];

/**
 * A question in the middle of a conversation: what will happen first, then the exact call, where its values come from and
 * who asks. Where that is more than a screen, what will happen stands once more right above the prompt.
 *
 * @param rows of the terminal
 */
export function renderInline(intentId: string, gate: WaitingGate, look: Look, rows: number): string[] {
  const lines = gate.question.split('\n');
  const isWhole = holds(lines, argumentLines(gate.call.args)) && lines.some((line) => line.startsWith(INLINE[0]!));
  // A question that is laid out in another way is shown whole.
  if (!isWhole) return [...renderGate(intentId, gate, look), '', ...renderGist(gate, look)];
  let isKept = false;
  const kept = lines.filter((line) => {
    if (!line.startsWith(MARK) && !line.startsWith(REMARK)) isKept = INLINE.some((start) => line.startsWith(start));
    return isKept;
  });
  const trial = trialOf(gate.question);
  const happens = [...happensOf(gate), ...(trial ? [`Dry run: ${trial.outcome}`] : []), ...changeLines(gate)];
  const all = [
    ...screenLines([`Intent ${intentId} waits for your approval of this step:`, ...quoted(gate.node_id)], look),
    ...['', ...screenLines(happens, look), ''],
    ...screenLines(kept, look),
  ];
  return all.length < rows - 1 ? all : [...all, ...renderGist(gate, look)];
}

/**
 * What the dry run says would change: a server's words, in two short lines each, so that they push nothing off the screen.
 */
function changeLines({ question }: WaitingGate): string[] {
  const trial = trialOf(question);
  const changes = trial && changesOf(trial);
  if (!changes) return [];
  const lines = changes.slice(0, CHANGES).flatMap(({ what, from, to }) => brief(`${what}: ${from} -> ${to}`));
  const more = changes.length - CHANGES;
  return ['What the dry run says would change:', ...lines, ...(more > 0 ? [`${REMARK}and ${more} more`] : [])];
}
