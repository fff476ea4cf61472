import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Installation, startInstallation } from '../../../test/support/installation.ts';
import { sharedOwner } from '../../../test/support/temporary.ts';
import type { MachineTurnView } from '../../wire/machine-turn.ts';

const SESSION = '3f0d5d1e-0000-4000-8000-000000000001';
const RESULT = {
  type: 'result',
  subtype: 'success',
  num_turns: 1,
  result: 'The deploy is green.',
  session_id: SESSION,
};

describe('an agent in a terminal', () => {
  let house: Installation;
  let folder: string;
  const shared = sharedOwner();
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'reveille-agent-'));
    shared.after(() => rmSync(folder, { recursive: true, force: true }));
    house = await startInstallation(shared);
    const agent = join(folder, 'claude');
    writeFileSync(agent, `#!/bin/sh\npwd > "${folder}/where"\necho '${JSON.stringify(RESULT)}'\n`);
    chmodSync(agent, 0o755);
  });
  after(() => shared.end());

  test('is registered by its name and a folder, and missing parts are reported', async () => {
    const said = await house.run('machine', 'put', 'bob', '--provider', 'claude', '--dir', folder, '--bin', 'no-such');
    assert.match(said, /^Machine of bob\n/);
    assert.ok(said.includes(`claude ${folder}`), said);
    assert.match(said, /\nNot ready yet: the program "no-such" is not on the PATH of the router/);
    // A program that is run for each wake has no token to expect.
    assert.doesNotMatch(said, /token|not shown again/);
    assert.match(await house.run('machine', 'list'), /\nbob +active +claude \//);
    assert.match(await house.run('machine', 'turns', 'bob'), /^No turns\. .*: reveille alarm show <alarm-id>\n$/);
    const unknown = await house.attempt(['machine', 'put', 'bob', '--provider', 'clude', '--dir', '.']);
    assert.match(
      unknown.stderr,
      /spec\.preset must be one of a2a, claude, codex, .*\(got "clude"\); providers are http, process, .*; did you mean claude\?/,
    );
    const noAddress = await house.attempt(['machine', 'put', 'bob', '--provider', 'opencode']);
    assert.match(noAddress.stderr, /spec\.url is required for the preset opencode: the address of the OpenCode server/);
  });

  test('is woken by an alarm, and the outcome can be read', async () => {
    await house.run('machine', 'put', '--provider', 'claude', '--dir', folder, '--bin', join(folder, 'claude'));
    const words = ['alarm', 'set', 'Is the deploy green?', '--in', '1h', '--conversation', 'deploys', '--json'];
    const { id } = JSON.parse(await house.run(...words));
    await house.run('alarm', 'trigger', id);
    let turn: MachineTurnView | undefined;
    while (turn?.status !== 'done') {
      const [line = ''] = (await house.run('machine', 'turns', '--json')).split('\n');
      turn = line === '' ? undefined : (JSON.parse(line) as MachineTurnView);
      assert.notEqual(turn?.status, 'failed', turn?.error);
    }
    assert.deepEqual([turn.reply, turn.conversation_id, turn.session], ['The deploy is green.', 'deploys', SESSION]);
    const listed = await house.run('machine', 'turns');
    assert.match(listed, /^ACCEPTED +STATUS +CONVERSATION +OUTCOME\n/);
    assert.match(listed, /done +deploys +The deploy is green\.\n1 done in all\n$/);
    const whole = await house.run('machine', 'turns', '--fire', turn.fire_id);
    assert.match(whole, new RegExp(`^Turn ${turn.id}\n`));
    assert.match(whole, new RegExp(`session of claude +${SESSION}\n`));
    assert.match(whole, /\n\nThe deploy is green\.\n$/);
    assert.equal((await house.attempt(['machine', 'turns', '--status', 'over'])).status, 2);
  });
});
