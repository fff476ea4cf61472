/**
 * `docs/reference/errors/*.md`: a page for each error code, from its declaration (`src/wire/errors.ts`) and from the
 * places that throw it with another HTTP status.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ErrorCode, ReveilleError, STATUS_OF } from '../src/wire/errors.ts';
import { meanings } from './settings-page.ts';

const SOURCES = join(import.meta.dirname, '..', 'src');

/** An error with an explicit HTTP status. */
const FINER = /new ReveilleError\(\s*'(\w+)',(?:(?!new ReveilleError)[\s\S]){0,300}?\bstatus: (\d{3})\b/g;

/** The explicit statuses of each code. */
function finerStatuses(): ReadonlyMap<string, readonly number[]> {
  const files = globSync('**/*.ts', { cwd: SOURCES, exclude: ['**/*.test.ts', '**/testing/**'] });
  const found = files.flatMap((file) => [...readFileSync(join(SOURCES, file), 'utf8').matchAll(FINER)]);
  const byCode = Map.groupBy(found, ([, code]) => code!);
  const statuses = (matches: readonly RegExpMatchArray[]) => [
    ...new Set(matches.map(([, , status]) => Number(status))),
  ];
  return new Map([...byCode].map(([code, matches]) => [code, statuses(matches).sort((one, other) => one - other)]));
}

/** A wrong command line has its own exit status. */
const exitStatus = (code: ErrorCode) =>
  code === 'invalid_request' ? '1, or 2 if the command line itself is wrong' : '1';

/**
 * The pages by code.
 *
 * @throws Error for a code without a comment
 */
export function errorPages(): Map<string, string> {
  const known = meanings(['wire/errors.ts']);
  const finer = finerStatuses();
  const pages = Object.entries(STATUS_OF).map(([name, status]) => {
    const code = name as ErrorCode;
    const meaning = known.get(code);
    if (meaning === undefined)
      throw new Error(`${code} has no comment in src/wire/errors.ts, which says what it means`);
    const { retryable } = new ReveilleError(code, '');
    const others = finer.get(code);
    const answer = JSON.stringify({ ok: false, error: { code, message: '…', retryable } });
    const lines = [
      `# \`${code}\``,
      meaning,
      [
        `- HTTP status: ${status}${others ? `; in more specific cases ${others.join(', ')}` : ''}`,
        `- Retryable: ${retryable ? 'yes' : 'no'}, unless \`retryable\` in the answer differs`,
        `- Exit status of a command: ${exitStatus(code)}`,
      ].join('\n'),
      `\`\`\`json\n${answer}\n\`\`\``,
      '[All error codes](../routes.md#error-codes). This page is generated (`npm run schemas`).',
    ];
    return [code, `${lines.join('\n\n')}\n`] as const;
  });
  return new Map(pages);
}
