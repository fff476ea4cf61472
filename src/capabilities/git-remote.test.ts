import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../kit/clock/clock.ts';
import { Remotes } from './git-remote.ts';

test('an address below an allowed prefix is refused when a server could decode it to one outside', async (t) => {
  const remotes = new Remotes(systemClock, 'https://git.example.org/team/', 'token');
  t.after(() => remotes.close());
  const outside = [
    ...['..%2fother/x.git', '..%2Fother/x.git', 'a/..%2f..%2fother/x.git', '..%5cother/x.git', '%2e%2e%2fother/x.git'],
    ...['..;/other/x.git', '%2e%2e;/other/x.git', '..;a=b/other/x.git', '..%252fother/x.git', 'x.git%00'],
    ...['../other/x.git', '%2e%2e/other/x.git', '..\\other/x.git'],
  ];
  for (const path of outside) assert.throws(() => remotes.open(`https://git.example.org/team/${path}`), path);
  for (const path of ['x.git', 'a/b/x.git', 'My%20Project/_git/x', 'a..b/x.git', 'x;y.git'])
    assert.equal(remotes.open(`https://git.example.org/team/${path}`).href, `https://git.example.org/team/${path}`);
});
