import assert from 'node:assert/strict';
import { test } from 'node:test';
import { transcriptOf } from '../../../src/agents/neo/context/summary.ts';
import { contextWindow } from '../../../src/agents/neo/context/window.ts';
import type { ModelMessage } from '../../../src/kit/model/model.ts';
import { type Dice, diceFrom, rounds } from '../../support/random/random.ts';

const TRANSCRIPTS = rounds(1000, 10_000);

const HEX = '0123456789abcdef';
const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const WORDS = 'the agent paid holder after holder and waited until morning before it went on with what was left'.split(
  ' ',
);

const pick = <T>(dice: Dice, from: ArrayLike<T>): T => from[dice(from.length)]!;
const string = (dice: Dice, alphabet: string, length: number) =>
  Array.from({ length }, () => pick(dice, alphabet)).join('');

/** Kinds of content that must be preserved, created independently of the extractor's recognition. */
const KINDS: readonly ((dice: Dice) => string)[] = [
  (dice) => `0x${string(dice, HEX, 40)}`,
  (dice) => string(dice, HEX, 64),
  (dice) =>
    `${string(dice, HEX, 8)}-${string(dice, HEX, 4)}-7${string(dice, HEX, 3)}-8${string(dice, HEX, 3)}-${string(dice, HEX, 12)}`,
  (dice) => `${1 + dice(9)}${string(dice, '0123456789', 6 + dice(20))}`,
  (dice) =>
    `${pick(dice, ['https', 'http', 'wss', 'matrix'])}://${string(dice, LETTERS, 6)}.example/${string(dice, LETTERS, 5)}/${string(dice, BASE58, 8)}?q=${dice(1000)}`,
  (dice) =>
    `/${string(dice, LETTERS, 4)}/${string(dice, LETTERS, 6)}/${string(dice, LETTERS, 5)}.${pick(dice, ['txt', 'ts', 'json'])}`,
  (dice) => `${string(dice, LETTERS, 4)}/${string(dice, LETTERS, 6)}/${string(dice, LETTERS, 5)}.md`,
  (dice) => `${pick(dice, ['alarm', 'conv', 'turn'])}_${string(dice, LETTERS, 3)}${dice(10)}${string(dice, BASE58, 6)}`,
  (dice) => `1${string(dice, BASE58, 32)}`,
  (dice) => `did:matrix:${string(dice, LETTERS, 5)}:${string(dice, HEX, 16)}`,
  (dice) => `${1 + dice(9)},${100 + dice(900)},${100 + dice(900)}`,
  (dice) => `10.${dice(256)}.${dice(256)}.${dice(256)}:${1024 + dice(60_000)}`,
  (dice) => `C:\\${string(dice, LETTERS, 5)}\\${string(dice, LETTERS, 6)}.txt`,
];

/** The forms of an identifier in the text of a tool or a person. */
const SETTINGS: readonly ((identifier: string) => string)[] = [
  (identifier) => identifier,
  (identifier) => `${identifier}.`,
  (identifier) => `(${identifier})`,
  (identifier) => `{"id":"${identifier}"}`,
  (identifier) => `'${identifier}',`,
  (identifier) => `\`${identifier}\``,
  (identifier) => `<${identifier}>`,
];

function paragraph(dice: Dice, planted: string[]): string {
  const pieces: string[] = [];
  for (let n = 2 + dice(5); n > 0; n--) {
    for (let count = dice(12); count > 0; count--) pieces.push(pick(dice, WORDS));
    if (dice(3) === 0) continue;
    const identifier = pick(dice, KINDS)(dice);
    planted.push(identifier);
    pieces.push(pick(dice, SETTINGS)(identifier));
  }
  return pieces.join(pick(dice, [' ', '\n', '  ']));
}

function step(dice: Dice, planted: string[], index: number): ModelMessage[] {
  const call = { id: `c${index}`, name: 'files__read', input: JSON.stringify({ note: paragraph(dice, planted) }) };
  return [
    { role: 'assistant', content: dice(2) ? paragraph(dice, planted) : '', toolCalls: [call] },
    { role: 'tool', callId: call.id, name: call.name, content: paragraph(dice, planted), isError: dice(5) === 0 },
  ];
}

/** A summarizer that loses content, in the ways that models lose it. */
function lossy(dice: Dice): (text: string) => Promise<string> {
  return (text) => {
    switch (dice(5)) {
      case 0:
        return Promise.resolve('The agent did some work.');
      case 1:
        return Promise.resolve(text.slice(0, dice(text.length)));
      case 2:
        // Digits swapped.
        return Promise.resolve(text.slice(0, text.length >> 1).replace(/\d\d/g, (pair) => `${pair[1]}${pair[0]}`));
      case 3:
        return Promise.reject(new Error('the model is gone'));
      default:
        return Promise.resolve('');
    }
  };
}

/** Whether a text has a token by itself, not as a part of a longer one. */
function occursAlone(token: string, text: string): boolean {
  for (let at = text.indexOf(token); at >= 0; at = text.indexOf(token, at + 1)) {
    // A line end in JSON notation ends in a letter.
    const before = text.slice(0, at).endsWith('\\n') ? ' ' : (text[at - 1] ?? ' ');
    const after = text[at + token.length] ?? ' ';
    if (!/[A-Za-z0-9]/.test(before) && !/[A-Za-z0-9]/.test(after)) return true;
  }
  return false;
}

test(`over ${TRANSCRIPTS} generated transcripts and a summarizer that loses everything, no identifier is lost`, async (t) => {
  let identifiers = 0;
  let compactions = 0;
  for (let seed = 0; seed < TRANSCRIPTS; seed++) {
    const dice = diceFrom(seed);
    const planted: string[] = [];
    const question: ModelMessage = { role: 'user', content: 'Go on.' };
    const window = contextWindow({
      limit: 600 + dice(900),
      earlier: [
        { role: 'user', content: paragraph(dice, planted) },
        { role: 'assistant', content: paragraph(dice, planted) },
      ],
      question,
      summarize: lossy(dice),
      onFailure: () => {},
    });
    for (let n = 1 + dice(4); n > 0; n--) {
      window.add(step(dice, planted, n));
      if ((await window.fit(100)) === 'compacted') compactions++;
    }
    const shown = transcriptOf(window.messages());
    for (const identifier of planted) {
      // In arguments, which are JSON, a backslash is doubled.
      const written = JSON.stringify(identifier).slice(1, -1);
      assert.ok(
        occursAlone(identifier, shown) || occursAlone(written, shown),
        `seed ${seed} lost ${identifier} in\n${shown}`,
      );
      identifiers++;
    }
  }
  assert.ok(compactions > TRANSCRIPTS / 4, `only ${compactions} compactions`);
  t.diagnostic(`${TRANSCRIPTS} transcripts, ${compactions} compactions, ${identifiers} identifiers, 0 lost`);
});
