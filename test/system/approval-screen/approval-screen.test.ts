/**
 * The approval screen in a real terminal of two sizes, for calls that try to disguise themselves. After an intended
 * change of the screen, `npm run approval-screens` rewrites the golden files.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { PROGRAM } from '../../../src/cli/home/package-root.ts';
import type { Size } from '../../support/pseudo-terminal.ts';
import { needs } from '../../support/tools.ts';
import { BENIGN, CASES, COMMANDS, type HostileCase } from './cases.ts';
import { framed, MORE, openScreens, PROMPT, type Screens, SIZES, steady } from './screens.ts';

const isMarked = (row: string) => /^ {2}\|(?: |! |\+ )/.test(row);
/** A remark of the program that only some questions have; it names code points and nothing else. */
const CAREFUL = /^(?:Careful: some characters only| {4}(?:[a-z (),;]|U\+[0-9A-F]{4,6}|\\u\{…\})+\.?)/;

/** The emulator omits the blanks at the end of a row. */
const withoutBlanks = (text: string) => text.replaceAll(' ', '');

/** The command on lines of a screen, without the layout's marks and breaks, and without blanks. */
function commandIn(rows: readonly string[]): string {
  const from = rows.indexOf('Command, whole:') + 1;
  const lines = rows.slice(from).filter((row) => !MORE.test(row) && !/^Approve\?|^$/.test(row));
  return withoutBlanks(lines.map((row) => row.replace(/^ {2}\|\+?/, '')).join(''));
}

type Seen = { readonly id: string; readonly rows: string[]; readonly all: string[]; readonly wrapped: string[] };

describe('the approval screen', { skip: needs('script') }, () => {
  let screens: Screens;
  /** The program's own lines, by the width of the terminal, as harmless calls have them. */
  const own = new Map<number, Set<string>>();

  async function capture(hostile: HostileCase, id: string, size: Size): Promise<Seen> {
    const watched = await screens.open(hostile, id, size);
    const seen = { id, rows: watched.rows(), all: watched.all(), wrapped: watched.wrapped() };
    await watched.end();
    return seen;
  }
  const captureBothSizes = async (hostile: HostileCase) => {
    const id = await screens.submit(hostile);
    return Promise.all(SIZES.map(async (size) => ({ size, ...(await capture(hostile, id, size)) })));
  };

  before(async () => {
    screens = await openScreens(PROGRAM, PROMPT);
    for (const call of BENIGN)
      for (const { size, id, all } of await captureBothSizes(call)) {
        const rows = own.get(size.columns) ?? new Set();
        for (const row of steady(all, id)) if (!isMarked(row)) rows.add(row);
        own.set(size.columns, rows);
      }
  });
  after(() => screens?.close());

  for (const hostile of CASES)
    test(`shows what the call does, whatever it hides: ${hostile.name}`, async () => {
      for (const { size, id, rows, all, wrapped } of await captureBothSizes(hostile)) {
        const shown = framed(steady(rows, id), size);
        for (const wanted of [...hostile.wants, 'Effect: ', 'Amount:', 'Recipient:'])
          assert.ok(
            rows.some((row) => row.startsWith(wanted)),
            `${JSON.stringify(wanted)} cannot be seen at the prompt:\n${shown}`,
          );
        assert.deepEqual(wrapped, [], 'the terminal itself wraps no line');
        for (const row of steady(all, id)) {
          const isOwn = own.get(size.columns)!.has(row) || CAREFUL.test(row);
          assert.ok(
            isMarked(row) || isOwn,
            `neither a line of the program nor marked: ${JSON.stringify(row)}\n${shown}`,
          );
        }
        const file = new URL(`./golden/now/${hostile.name}-${size.columns}x${size.rows}.txt`, import.meta.url);
        assert.equal(shown, readFileSync(file, 'utf8'), 'after an intended change: npm run approval-screens');
      }
    });

  for (const command of COMMANDS)
    test(`shows a whole command before it accepts an answer: ${command.name}`, async () => {
      const id = await screens.submit(command);
      for (const size of SIZES) {
        const watched = await screens.open(command, id, size);
        const [rows, all, wrapped] = [watched.rows(), watched.all(), watched.wrapped()];
        await watched.end();
        const gist = all.slice(all.findLastIndex((row) => row === '-'.repeat(Math.min(60, size.columns - 1))));
        const whole = withoutBlanks(`"command": ${command.effect}`);
        assert.equal(commandIn(gist), whole);
        if (command.name === 'curl-pipe-sh') assert.equal(commandIn(rows), whole, 'on the screen of the prompt');
        assert.deepEqual(wrapped, [], 'the terminal itself wraps no line');
        for (const row of steady(all, id).filter((one) => !MORE.test(one)))
          assert.ok(
            isMarked(row) || own.get(size.columns)!.has(row),
            `neither a line of the program nor marked: ${row}`,
          );
        const file = new URL(`./golden/now/${command.name}-${size.columns}x${size.rows}.txt`, import.meta.url);
        assert.equal(
          framed(steady(rows, id), size),
          readFileSync(file, 'utf8'),
          'after a change: npm run approval-screens',
        );
      }
    });

  test('accepts no approval before the last page of a command is shown', async () => {
    const blanks = COMMANDS.find(({ name }) => name === 'command-behind-blanks')!;
    const command = { ...blanks, name: 'left-unread' };
    const id = await screens.submit(command);
    const begun = await screens.begin(command, id, SIZES[0]!);
    assert.match(begun.rows().join('\n').trimEnd(), MORE);
    assert.ok(!begun.rows().join('').includes('rm -rf'), 'the end of the command is on a later page');
    await begun.type('yes\r', MORE);
    await begun.end();
    assert.match(begun.all().join('\n'), /not approved; the question still waits/);
  });

  test('pages through the whole call on request, and asks again', async () => {
    const memo = `begin ${'0123456789'.repeat(300)} end`;
    const hostile: HostileCase = { ...BENIGN[0]!, name: 'details', args: { ...BENIGN[0]!.args, memo } };
    const id = await screens.submit(hostile);
    const watched = await screens.open(hostile, id, SIZES[0]!);
    await watched.type('d\r', /\n-- Enter for more, q to end --$/);
    let shown = '';
    for (;;) {
      await watched.type('\r', /\n(?:-- Enter for more, q to end --|Approve\? yes, no, d for details:)$/);
      const rows = watched.all().filter((row) => !row.startsWith('-- Enter for more'));
      shown = rows.join('').replaceAll('  |+ ', '');
      if (watched.rows().join('\n').trimEnd().endsWith('details:')) break;
    }
    assert.ok(shown.includes(memo), shown);
    assert.ok(watched.rows().includes('  | 12.50 EUR'));
    await watched.end();
  });
});
