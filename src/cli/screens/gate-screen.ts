/**
 * A waiting question on a terminal. The executor's text does not know the width of the terminal. Each line is broken
 * here before the terminal would do it, so that every line with foreign text begins with its mark. The effect of the
 * call comes first, and again right above the prompt. Pure.
 */
import type { WaitingGate } from '../../executor/client.ts';
import { fullyEscaped } from '../../kit/text/hidden-characters.ts';
import { changesOf, dryRunOf, effectOf, headOf } from '../../kit/text/question.ts';
import { argumentLines, brief, MARK, quoted, quotedJson, REMARK, wholeLines } from '../../kit/text/visible.ts';
import { wrap } from './columns.ts';
import type { Reader } from './render.ts';

/** Begins the continuation of a marked line. */
const GOES_ON = '  |+ ';
const OWN_INDENT = '    ';
const NARROWEST = 20;
/** Changes that are listed right above the prompt. */
const CHANGES = 4;

/**
 * The largest number of cells of a character. Terminals disagree about emoji, joined and ambiguous characters; none uses
 * more than two cells for a code point.
 */
const cellsOf = (character: string) => (character <= '\u007e' ? 1 : 2);

/** Cuts a text so that no terminal needs more than `width` cells for a piece. */
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

/** Wraps a line of ours at blanks, and cuts words that are longer than a line. */
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
 * Lines of the executor as lines of a terminal.
 *
 * @param lines each without a line end; foreign text begins with {@link MARK} or {@link REMARK}
 */
export function screenLines(lines: readonly string[], look: Pick<Reader, 'width'>): string[] {
  // Some terminals add an empty line after a line that ends in the last column.
  const width = Math.max(NARROWEST, look.width) - 1;
  return lines.map(fullyEscaped).flatMap((line) => {
    const mark = [MARK, REMARK].find((one) => line.startsWith(one));
    return mark === undefined ? ownLine(line, width) : markedLine(line, mark, width);
  });
}

/** Foreign text below a title of ours, each line marked. */
export function markedBlock(title: string, text: string, look: Reader): string[] {
  return [look.paint('dim', title), ...screenLines(quoted(text), look)];
}

const holds = (lines: readonly string[], part: readonly string[]) =>
  `\n${lines.join('\n')}\n`.includes(`\n${part.join('\n')}\n`);

/** The beginning of a question: the tool, and the arguments that define the effect, whole. */
function happensOf({ question, call }: WaitingGate): string[] {
  const head = headOf(question);
  const tool = brief(JSON.stringify(call.tool));
  // The tool comes from the call itself, not from the question.
  const named = holds(head, tool) ? head : ['This tool would be called:', ...tool, ...head];
  // An older executor does not mark the relevant arguments.
  return effectOf(question).length > 0 ? named : [...named, 'Every argument, whole:', ...wholeLines(call.args)];
}

/** The exact call, if the question does not show it in the same layout, and whole on request. */
function callLines({ question, call }: WaitingGate, full: boolean): string[] {
  const shown = question.split('\n');
  if (!full && holds(shown, argumentLines(call.args))) return [];
  const args = full ? quotedJson(JSON.stringify(call.args, null, 2)) : argumentLines(call.args);
  return ['', 'This exact call is made:', ...quotedJson(JSON.stringify(call.tool)), ...args];
}

/** The whole question and the exact call. @param full does not shorten long texts */
export function renderGate(intentId: string, gate: WaitingGate, look: Reader, full = false): string[] {
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

/** The text right above the prompt, however much scrolled away: the effect of the call, whole. */
export function renderGist(gate: WaitingGate, look: Reader): string[] {
  return [
    look.paint('dim', '-'.repeat(Math.min(60, Math.max(NARROWEST, look.width) - 1))),
    ...screenLines([...changeLines(gate), ...happensOf(gate)], look),
  ];
}

/** Begins the part of a question that is shown inside a conversation; the rest is shown on request. */
const INLINE = ['Arguments, exactly', 'Careful:', 'Where the values come from', 'Asked for by', 'Handed over'];

/**
 * A question inside a conversation: the effect first, then the exact call, the origin of its values and the requester.
 * If that is longer than a screen, the effect is repeated right above the prompt.
 *
 * @param rows of the terminal
 */
export function renderInline(intentId: string, gate: WaitingGate, look: Reader, rows: number): string[] {
  const lines = gate.question.split('\n');
  const isWhole = holds(lines, argumentLines(gate.call.args)) && lines.some((line) => line.startsWith(INLINE[0]!));
  // A question with another layout is shown whole.
  if (!isWhole) return [...renderGate(intentId, gate, look), '', ...renderGist(gate, look)];
  let isKept = false;
  const kept = lines.filter((line) => {
    if (!line.startsWith(MARK) && !line.startsWith(REMARK)) isKept = INLINE.some((start) => line.startsWith(start));
    return isKept;
  });
  const trial = dryRunOf(gate.question);
  const happens = [...happensOf(gate), ...(trial ? [`Dry run: ${trial.outcome}`] : []), ...changeLines(gate)];
  const all = [
    ...screenLines([`Intent ${intentId} waits for your approval of this step:`, ...quoted(gate.node_id)], look),
    ...['', ...screenLines(happens, look), ''],
    ...screenLines(kept, look),
  ];
  return all.length < rows - 1 ? all : [...all, ...renderGist(gate, look)];
}

/** The changes according to the dry run: text of a server, in two short lines each, so that nothing leaves the screen. */
function changeLines({ question }: WaitingGate): string[] {
  const trial = dryRunOf(question);
  const changes = trial && changesOf(trial);
  if (!changes) return [];
  const lines = changes.slice(0, CHANGES).flatMap(({ what, from, to }) => brief(`${what}: ${from} -> ${to}`));
  const more = changes.length - CHANGES;
  return ['The dry run predicts these changes:', ...lines, ...(more > 0 ? [`${REMARK}and ${more} more`] : [])];
}
