import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPolicy } from '../../../src/executor/policy/read-policy.ts';
import { bundledManifest, bundledPolicy } from '../../../src/mcp-host/bundled-programs.ts';
import { classify } from '../../../src/mcp-host/classify.ts';
import { loadManifest } from '../../../src/mcp-host/manifest.ts';

/** What the policy that ships makes of each tool that ships. */
function decisions(unattended: boolean) {
  const policy = readPolicy(bundledPolicy());
  const { servers } = loadManifest(bundledManifest('executor'), {});
  const now = Date.parse('2026-06-15T03:00:00Z');
  const found = servers.flatMap(({ alias, tools }) =>
    [...tools!.values()].map((tool) => {
      const { surface } = classify(tool);
      const request = {
        tool: `${alias}/${tool.name}`,
        args: {},
        surface,
        user: 'ada',
        unattended,
        now,
        amount: undefined,
        spends: [],
      };
      return [request.tool, policy.decide(request).effect] as [string, string];
    }),
  );
  return (effect: string) => found.flatMap(([name, got]) => (got === effect ? [name] : [])).sort();
}

const ASKED = ['fetch/fetch', 'git/clone', 'git/pull', 'git/push', 'ledger/exchange', 'ledger/transfer', 'shell/run'];

test('with what ships, reads and writes in the workspace go, and what leaves the machine is asked', () => {
  for (const unattended of [false, true]) {
    const by = decisions(unattended);
    assert.deepEqual(by('ask'), ASKED);
    assert.deepEqual(by('deny'), []);
    const writes = ['fs/write_file', 'fs/edit_file', 'fs/move_file', 'git/init', 'git/add', 'git/commit', 'git/switch'];
    for (const name of [...writes, 'fs/read_text_file', 'git/status', 'git/log', 'ledger/accounts'])
      assert.ok(by('allow').includes(name), name);
  }
});
