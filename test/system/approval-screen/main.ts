/**
 * Writes the approval screen at its prompt, for each hostile call and size, to `golden/now`. With a program of another
 * version it writes to `golden/before`: `node test/system/approval-screen/main.ts [path to bin/reveille.mjs of that version]`.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { PROGRAM } from '../../../src/cli/home/package-root.ts';
import { CASES, COMMANDS } from './cases.ts';
import { framed, openScreens, PROMPT, SIZES, steady } from './screens.ts';

const [other] = process.argv.slice(2);
const folder = new URL(`./golden/${other === undefined ? 'now' : 'before'}/`, import.meta.url);
const screens = await openScreens(other ?? PROGRAM, PROMPT, {
  knowsRecipients: other === undefined,
});
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
try {
  for (const hostile of other === undefined ? [...CASES, ...COMMANDS] : CASES) {
    const id = await screens.submit(hostile);
    for (const size of SIZES) {
      const watched = await screens.open(hostile, id, size);
      const file = `${hostile.name}-${size.columns}x${size.rows}.txt`;
      writeFileSync(new URL(file, folder), framed(steady(watched.rows(), id), size));
      await watched.end();
    }
  }
} finally {
  await screens.close();
}
