import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { DAEMON_PROVIDERS } from '../../../src/router/providers/descriptors.ts';
import { type Installation, startInstallation } from '../../support/installation.ts';
import { sharedOwner } from '../../support/temporary.ts';

const PAGE = readFileSync(join(import.meta.dirname, '..', '..', '..', 'docs', 'reference', 'wake-targets.md'), 'utf8');
const DAEMONS = DAEMON_PROVIDERS.map(({ name }) => name);

let house: Installation;
const shared = sharedOwner();
before(async () => {
  house = await startInstallation(shared);
});
after(() => shared.end());

/** The arguments of a command line, as a shell reads one without substitutions. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

/** The section of the page under a heading. */
const sectionOf = (name: string) => PAGE.split(/^## /m).find((section) => section.startsWith(`${name}\n`)) ?? '';

for (const provider of DAEMONS) {
  test(`the commands of the page for ${provider} register a machine`, async () => {
    const lines = sectionOf(provider)
      .split('\n')
      .filter((line) => line.startsWith('reveille machine put '));
    assert.ok(lines.length > 0);
    for (const [n, line] of lines.entries()) {
      const [, ...args] = wordsOf(line);
      assert.equal(args[args.indexOf('--provider') + 1], provider);
      // Each has its own machine, at the place of the user id in the command line.
      const user = `${provider}-${n}`;
      const answer = JSON.parse(await house.run('machine', 'put', user, '--json', ...args.slice(2)));
      assert.deepEqual([answer.user_id, answer.provider, answer.state], [user, provider, 'active']);
      const shown = await house.run('machine', 'show', user);
      assert.match(shown, new RegExp(`^Machine of ${user}\n`));
      if (line.includes('--memory-mb')) assert.match(shown, /limits +--memory-mb 512 --processes 50\n/);
    }
  });

  test(`the page lists for ${provider} the requirements, the events and the errors`, () => {
    const section = sectionOf(provider);
    for (const part of ['**You need**', '**A wake**', '**Sleep**', '| Error | What to do |'])
      assert.ok(section.includes(part), part);
    const screen = section.split('\n').length;
    assert.ok(screen <= 50, `${screen} lines`);
  });
}
